//! Any split by regular expressions, with the reference's own regex engine.

use std::ops::Range;

use onig::Regex;
use serde::Deserialize;

use super::Split;
use crate::Result;
use crate::tokenizer::failure;

/// What becomes of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Behavior {
    /// A piece of its own.
    Isolated,
    /// Left out.
    Removed,
}

/// One split of a pre-tokenizer.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    /// The regular expression.
    pub(crate) pattern: String,
    /// What becomes of a match.
    pub(crate) behavior: Behavior,
    /// What is no match counts as one, and the reverse.
    pub(crate) invert: bool,
}

impl Stage {
    /// The pattern, if every match is a piece of its own.
    pub(super) fn isolating(&self) -> Option<&str> {
        (self.behavior == Behavior::Isolated).then_some(self.pattern.as_str())
    }
}

/// The stages, compiled.
#[derive(Debug)]
pub(crate) struct General(Vec<(Regex, Stage)>);

impl General {
    pub(super) fn new(stages: Vec<Stage>) -> Result<Self> {
        let compile = |stage: Stage| match Regex::new(&stage.pattern) {
            Ok(regex) => Ok((regex, stage)),
            Err(error) => Err(failure(format!("pre_tokenizer: the pattern {:?}: {error}", stage.pattern))),
        };
        Ok(Self(stages.into_iter().map(compile).collect::<Result<_>>()?))
    }
}

impl Split for General {
    fn next(&self, bytes: &[u8], _start: usize) -> usize {
        bytes.len()
    }

    fn each<const WIDE: bool>(&self, bytes: &[u8], range: Range<usize>, mut piece: impl FnMut(usize, usize)) {
        let mut pieces = vec![(range.start, range.end)];
        for (regex, stage) in &self.0 {
            let before = std::mem::take(&mut pieces);
            for (start, end) in before {
                cut(regex, stage, &bytes[start..end], |from, to| pieces.push((start + from, start + to)));
            }
        }
        for (start, end) in pieces {
            piece(start, end);
        }
    }
}

/// The pieces of one piece, empty ones left out.
fn cut(regex: &Regex, stage: &Stage, bytes: &[u8], mut piece: impl FnMut(usize, usize)) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let keeps = |matched: bool| stage.behavior == Behavior::Isolated || matched == stage.invert;
    let mut emit = |start: usize, end: usize, matched: bool| {
        if start < end && keeps(matched) {
            piece(start, end);
        }
    };
    let mut done = 0;
    for (start, end) in regex.find_iter(text) {
        emit(done, start, false);
        emit(start, end, true);
        done = end;
    }
    emit(done, text.len(), false);
}
