//! `tokentape`: a trajectory is a tape of literal tokens.
//!
//! What the policy sampled is recorded as it was sampled, and never re-encoded. The crate is the engine beneath the
//! Python package of the same name; it knows nothing of Python outside the folder `python/`.
//!
//! ```text
//! messages -template-> text + author of every byte -tokenizer-> ids + author of every token
//!    -act / observe-> Trajectory -rewards-> Group -> Arrow batch -pack-> packed batch -feed-> trainer
//! ```
//!
//! The modules stand on floors, and each imports only what stands beneath it (`tests/rust/layering.rs` enforces it).

// Floor 0
pub mod author;
pub mod error;
mod find;
mod number;
mod threads;
pub mod top_logprobs;
// Floor 1
pub mod advantage;
pub mod columns;
pub mod message;
pub mod plan;
pub mod row;
// Floor 2
pub mod template;
pub mod tokenizer;
pub mod tree;
// Floor 3
pub mod mask;
// Floor 4
pub mod render;
// Floor 5
pub mod bridge;
pub mod parse;
// Floor 6
pub mod audit;
pub mod trajectory;
// Floor 7
pub mod group;
// Floor 8
pub mod arrow;
// Floor 9
pub mod pack;
// Floor 10
pub mod verify;

pub use error::{Error, ErrorKind, Result};

/// A token id. Ids are int32 in every buffer, file and tensor.
pub type TokenId = i32;

#[cfg(feature = "python")]
mod python;
