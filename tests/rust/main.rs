//! Integration tests of the engine, without Python.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod layering;
