//! Integration tests of the engine, without Python.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod audits;
mod corpus;
mod layering;
mod masks;
mod pack;
mod pack_shared;
mod parse;
mod template_authors;
mod template_files;
mod template_fuzz;
mod template_goldens;
mod template_invariants;
mod template_probes;
mod template_resume;
mod texts;
mod tokenizer_fuzz;
mod tokenizer_loading;
mod tokenizer_segments;
mod tokenizer_store;
mod trajectory_state;
