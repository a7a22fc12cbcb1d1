//! The linter: record batches in, faults out; what it remembers does not grow with the file.

use arrow_array::Array;
use rayon::prelude::*;

use super::family::Family;
use super::fault::{Fault, Found, Kind};
use super::markers::Markers;
use super::repeats::{Keys, Seen, keys};
use super::rewards::Rewards;
use super::structure::Structure;
use super::tape::{self, Tape};
use super::{bounds, choice, shift, values};
use crate::arrow::{Batch, View};
use crate::{Error, Result, threads};

/// So many rows are looked at to learn markers.
const LEARNED_FROM: usize = 4096;

/// What a linter knows before it reads.
#[derive(Debug, Clone, Default)]
pub struct LintOptions {
    /// The ids that give tapes their structure; those that are empty are learned from the first rows.
    pub markers: Markers,
    /// What stands where there is no logprob: 0.0 in ours, 1.0 or NaN in other formats.
    pub filler: f32,
    /// Rows without logprobs are faults, as in formats whose trainers need them.
    pub needs_logprobs: bool,
    /// The most tokens a row may have.
    pub max_length: Option<usize>,
}

impl LintOptions {
    fn is_zero(&self, value: f32) -> bool {
        value.abs().to_bits() == 0 && self.filler.abs().to_bits() == 0
    }

    /// Whether a value stands for none.
    pub(super) fn is_filler(&self, value: f32) -> bool {
        // A filler is written as a constant: it is found by its bits, and -0.0 is a zero.
        value.to_bits() == self.filler.to_bits() || (value.is_nan() && self.filler.is_nan()) || self.is_zero(value)
    }
}

/// See the module's page.
#[derive(Debug, Default)]
pub struct Linter {
    options: LintOptions,
    learned: bool,
    rows: usize,
    tokens: usize,
    seen: Seen,
    ids: Seen,
    family: Family,
    rewards: Rewards,
    with_logprobs: usize,
    /// Rows without logprobs, before the first that has some.
    without_logprobs: usize,
    first_without: usize,
}

/// What one row says by itself.
struct Read {
    found: Found,
    keys: Keys,
    logprobs: Option<bool>,
}

impl Linter {
    /// A linter that has read nothing.
    pub fn new(options: LintOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The number of rows read.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of tokens read.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The markers: those given, and those learned so far.
    pub fn markers(&self) -> &Markers {
        &self.options.markers
    }

    /// Reads the next rows.
    pub fn lint(&mut self, batch: &Batch) -> Result<Vec<Fault>> {
        let mut faults = Vec::new();
        for (_, view) in batch.views()? {
            faults.extend(self.view(&view)?);
        }
        Ok(faults)
    }

    /// What can be said only when everything has been read.
    pub fn finish(&mut self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.rewards.finish().into_iter().collect();
        let needed = self.with_logprobs > 0 || self.options.needs_logprobs;
        if needed && self.without_logprobs > 0 {
            let mut found = Found::new(self.first_without);
            let rows = self.without_logprobs;
            found.row(Kind::MissingLogprobs, "logprobs", format!("{rows} rows from this one on have no logprobs"));
            faults.extend(found.faults);
        }
        faults
    }

    fn view(&mut self, view: &View<'_>) -> Result<Vec<Fault>> {
        if !self.learned {
            let tapes = (0..view.len().min(LEARNED_FROM)).map(|row| Tape::new(view, row));
            self.options.markers.learn(tapes);
            self.learned = !view.is_empty();
        }
        let (options, base, rewards) = (&self.options, self.rows, view.reward()?);
        let read = |row: usize| read_row(view, row, base + row, options, rewards[row]);
        let rows = (0..view.len()).into_par_iter().with_min_len(16).map(read);
        let rows = threads::shared(|| rows.collect::<Result<Vec<_>>>())?;
        let mut faults = Vec::new();
        self.family.enter(view)?;
        for (row, mut read) in rows.into_iter().enumerate() {
            self.compare(view, row, &mut read)?;
            self.tokens += view.token_ids.length(row);
            faults.extend(read.found.faults);
            faults.extend(self.rewards.add(view.text("group_id")?.value(row), self.rows, rewards[row]));
            self.rows += 1;
        }
        Ok(faults)
    }

    /// Compares a row with those before it.
    fn compare(&mut self, view: &View<'_>, row: usize, read: &mut Read) -> Result<()> {
        let number = self.rows;
        match read.logprobs {
            Some(true) => self.with_logprobs += 1,
            Some(false) if self.with_logprobs > 0 => {
                read.found.row(Kind::MissingLogprobs, "logprobs", "the row has no logprobs, and others have");
            }
            Some(false) => {
                if self.without_logprobs == 0 {
                    self.first_without = number;
                }
                self.without_logprobs += 1;
            }
            None => {}
        }
        let copy = read.keys.content.and_then(|key| self.seen.before(key, number));
        let namesake = read.keys.id.and_then(|key| self.ids.before(key, number));
        if let Some(earlier) = copy {
            let message = format!("the row is a copy of row {earlier}, all columns included");
            read.found.row(Kind::DuplicatedRow, "token_ids", message);
        } else if let Some(earlier) = namesake {
            read.found.row(Kind::RepeatedId, "trajectory_id", format!("row {earlier} has the same id"));
        }
        self.family.check(view, row, &mut read.found)
    }
}

fn read_row(
    view: &View<'_>,
    row: usize,
    number: usize,
    options: &LintOptions,
    reward: Option<f32>,
) -> Result<Read, Error> {
    let tape = Tape::new(view, row);
    let mut found = Found::new(number);
    let keys = keys(view, row, &tape, reward)?;
    if let Some(reward) = reward.filter(|reward| !reward.is_finite()) {
        found.row(Kind::NotFinite, "reward", format!("the reward is {reward}"));
    }
    if let Some(most) = options.max_length.filter(|most| tape.ids.len() > *most) {
        let message = format!("the row has {} tokens, {most} are allowed", tape.ids.len());
        found.row(Kind::Overlong, "token_ids", message);
    }
    let equal = values::lengths(view, row, &tape, &mut found);
    values::plain(view, row, &tape, &options.markers, &mut found);
    let samples = tape.has_samples();
    if equal {
        columns_together(view, row, &tape, options, &mut found);
    }
    Ok(Read { found, keys, logprobs: samples.then_some(tape.logprobs.is_some()) })
}

/// The checks that need columns of one length.
fn columns_together(view: &View<'_>, row: usize, tape: &Tape<'_>, options: &LintOptions, found: &mut Found) {
    let roles = bounds::roles(view, row, found);
    bounds::message_index(view, row, roles.len(), found);
    let turns = tape::turns(view, row);
    let inherited = view.text("parent_id").is_ok_and(|parents| !parents.is_null(row));
    if !tape.ids.is_empty() && !inherited && tape.loss.iter().all(|loss| *loss == 0) {
        found.row(Kind::AllZeroMask, "loss_mask", "no token of the row carries loss");
        return;
    }
    let markers = &options.markers;
    if tape.loss.first().is_some_and(|loss| *loss != 0) && tape.has_samples() {
        found.tokens(Kind::SegmentStartTrained, "loss_mask", 0..1, "the first token carries loss: nothing predicts it");
    }
    let before = found.faults.len();
    shift::check(tape, markers, options, found);
    let is_shifted =
        found.faults[before..].iter().any(|fault| matches!(fault.kind, Kind::MaskShifted | Kind::LogprobsShifted));
    if is_shifted {
        return;
    }
    Structure { tape: *tape, markers, options, turns: &turns }.check(found);
    bounds::cut_turns(tape, &turns, markers, found);
    let index = view.message_index.get(row).unwrap_or_default();
    let role = |token: usize| roles.get(usize::try_from(index[token]).ok()?).copied();
    choice::check(tape, markers, role, found);
    values::logprobs(tape, options, found);
    if found.faults.len() == before {
        let from = view.fork_at(row).and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
        bounds::turns(tape, &turns, from, found);
        bounds::versions(view, row, tape, found);
    }
}
