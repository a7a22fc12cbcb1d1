//! Lint and verify: what stored rollouts say about themselves, and what a template proves about them.
//!
//! *Invariant*: a check reads a row and changes nothing; a row for which the contract and its template speak has no
//! fault. What only looks odd is a [`Level::Smell`], never a fault.
//!
//! Lint needs no model. It knows what the columns must agree on, and reads the rest off the ids by [`Markers`]: the ids
//! that end a turn, that pad, and that stand before a turn, given by a model or learned from the first rows. Verify is
//! lint with the markers of a model, and a proof of everything that was not sampled: each tail is derived again from the
//! row's own messages and provenance.

mod bounds;
mod canonical;
mod choice;
mod family;
mod fault;
mod linter;
mod markers;
mod proof;
mod provenance;
mod repeats;
mod rewards;
mod shift;
mod structure;
mod tape;
mod texts;
mod values;

pub use fault::{Fault, Kind, Level};
pub use linter::{LintOptions, Linter};
pub use markers::Markers;
pub use proof::Prover;
