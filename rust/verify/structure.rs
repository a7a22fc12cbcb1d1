//! What the ids say about the mask: turns begin behind a header, end with a stop, and hold nothing else.
//!
//! Three witnesses are heard: the mask, the logprobs (a token without one was not sampled), and the ids, through the
//! [`Markers`]. A sampled run is walked from stop to stop; what stands between a stop and the next turn was not sampled,
//! whatever the mask says.

use std::ops::Range;

use super::fault::{Found, Kind};
use super::linter::LintOptions;
use super::markers::Markers;
use super::tape::{Tape, TurnSpan, runs};

/// So many exact zeros are no rounding of probabilities near one.
const LEAST_ZEROS: usize = 4;

/// The checks of one row.
pub(super) struct Structure<'a> {
    pub(super) tape: Tape<'a>,
    pub(super) markers: &'a Markers,
    pub(super) options: &'a LintOptions,
    pub(super) turns: &'a [TurnSpan<'a>],
}

impl Structure<'_> {
    /// Runs all checks.
    pub(super) fn check(&self, found: &mut Found) {
        for run in runs(self.tape.sampled) {
            let start = self.behind_header(&run, found);
            for piece in self.pieces(start..run.end, found) {
                self.filled(piece, found);
            }
            self.stop_behind(&run, found);
        }
        self.padding(found);
        self.doubled_stops(found);
    }

    fn none_recorded(&self, token: usize) -> bool {
        self.tape.logprobs.is_some_and(|values| self.options.is_filler(values[token]))
    }

    /// Where a run really begins: behind the header that it begins inside of.
    fn behind_header(&self, run: &Range<usize>, found: &mut Found) -> usize {
        let last = run.end.min(run.start + self.markers.header.len());
        let header_end = (run.start + 1..=last).find(|end| self.markers.header_ends(self.tape.ids, *end));
        let Some(end) = header_end else { return run.start };
        let message = "the end of the generation prompt is marked as sampled";
        found.tokens(Kind::PromptTrained, "sampled_mask", run.start..end, message);
        end
    }

    /// The turns of a run: what lies between a stop and the next turn is reported and left out.
    fn pieces(&self, run: Range<usize>, found: &mut Found) -> Vec<Range<usize>> {
        let ids = self.tape.ids;
        let mut pieces = Vec::new();
        let (mut start, mut at) = (run.start, run.start);
        while let Some(stop) = (at..run.end.saturating_sub(1)).find(|token| self.markers.is_stop(ids[*token])) {
            at = stop + 1;
            let Some(resumed) = self.resumes(at..run.end) else { continue };
            self.foreign(at..resumed, run.end, found);
            pieces.push(start..at);
            (start, at) = (resumed, resumed);
        }
        pieces.push(start..run.end);
        pieces
    }

    /// Where sampling goes on behind a stop, if something unsampled lies in between.
    fn resumes(&self, rest: Range<usize>) -> Option<usize> {
        if let Some(end) = self.markers.header_in(self.tape.ids, rest.clone()) {
            return Some(end);
        }
        match self.tape.logprobs {
            // Without logprobs, nothing but the stop says that sampling ended.
            None => Some(rest.end),
            Some(_) if !self.none_recorded(rest.start) && !self.is_zero(rest.start) => None,
            Some(_) => {
                let end = rest.clone().find(|token| !self.none_recorded(*token) && !self.is_zero(*token));
                Some(end.unwrap_or(rest.end))
            }
        }
    }

    fn is_zero(&self, token: usize) -> bool {
        self.tape.logprobs.is_some_and(|values| values[token] == 0.0)
    }

    /// Names the text between a stop and the next turn.
    fn foreign(&self, text: Range<usize>, end: usize, found: &mut Found) {
        if text.is_empty() {
            return;
        }
        let ids = &self.tape.ids[text.clone()];
        let last = text.end == end;
        let (kind, what) = if last && ids.iter().all(|id| self.markers.may_pad(*id)) {
            (Kind::PadTokenTrained, "padding")
        } else if ids.len() == 1 && self.markers.is_stop(ids[0]) {
            (Kind::DoubledStopToken, "a second stop token")
        } else if last {
            (Kind::TemplateTextTrained, "text behind the stop token")
        } else {
            (Kind::ToolTextTrained, "text between two turns")
        };
        let count = text.len();
        found.tokens(kind, "sampled_mask", text, format!("{what} is marked as sampled ({count} tokens)"));
    }

    /// A turn whose logprobs are all zero, all filler, or all one value.
    fn filled(&self, turn: Range<usize>, found: &mut Found) {
        let Some(values) = self.tape.logprobs.map(|values| &values[turn.clone()]) else { return };
        if values.len() < LEAST_ZEROS || found.explains(turn.start) {
            return;
        }
        let first = values[0];
        if values.iter().any(|value| value.to_bits() != first.to_bits()) || !first.is_finite() {
            return;
        }
        let (kind, what) = match first {
            0.0 => (Kind::ZeroFilledLogprobs, "zero: the engine's logprobs were lost"),
            first if self.options.is_filler(first) => (Kind::FillerOnSampledToken, "what stands for none here"),
            _ => (Kind::ConstantLogprobs, "one value: they were not measured"),
        };
        found.tokens(kind, "logprobs", turn, format!("all logprobs of a turn are {what}"));
    }

    /// A stop right behind a run, which does not count as sampled.
    fn stop_behind(&self, run: &Range<usize>, found: &mut Found) {
        let ids = self.tape.ids;
        let behind = run.end;
        if behind >= ids.len() || !self.markers.is_stop(ids[behind]) || self.markers.is_stop(ids[behind - 1]) {
            return;
        }
        let turn = self.turns.iter().find(|turn| turn.tokens.end == behind as i64);
        let ends_row = behind + 1 == ids.len();
        if turn.is_some_and(TurnSpan::was_cut) {
            return;
        }
        let (kind, message) = if ends_row || self.has_logprob(behind) {
            (Kind::StopTokenNotTrained, "the stop token of the turn does not count as sampled")
        } else {
            (Kind::TurnClosedUnsampled, "the turn is closed by a stop token that does not count as sampled")
        };
        found.tokens(kind, "sampled_mask", behind..behind + 1, message);
    }

    fn has_logprob(&self, token: usize) -> bool {
        self.tape.logprobs.is_some() && !self.none_recorded(token)
    }

    /// Padding inside a run, and at its end where only its look tells.
    fn padding(&self, found: &mut Found) {
        let ids = self.tape.ids;
        if !self.markers.pads.is_empty() {
            let pads = |token: usize| self.tape.is_sampled(token) && self.markers.is_pad(ids[token]);
            for run in super::tape::runs_where(0..ids.len(), pads) {
                if !found.explains(run.start) {
                    found.tokens(Kind::PadTokenTrained, "sampled_mask", run, "padding is marked as sampled");
                }
            }
            return;
        }
        // The special ids next to the stop: an unsampled one at the end of a cut row has no logprob.
        let Some(last) = ids.len().checked_sub(1).filter(|last| self.tape.is_sampled(*last)) else { return };
        let near = self.markers.stops.iter().any(|stop| (1..=2).contains(&stop.abs_diff(ids[last])));
        if near && !self.markers.is_stop(ids[last]) && self.is_zero(last) && !found.explains(last) {
            found.tokens(Kind::PadTokenTrained, "sampled_mask", last..last + 1, "what looks like padding is sampled");
        }
    }

    /// The same stop twice in a row: the template's own behind the sampled one.
    fn doubled_stops(&self, found: &mut Found) {
        let ids = self.tape.ids;
        let mut at = 1;
        while at < ids.len() {
            let second = at;
            at += 1;
            if ids[second] != ids[second - 1] || !self.markers.is_stop(ids[second]) || found.explains(second) {
                continue;
            }
            let turn_sampled = self.tape.is_sampled(second - 1);
            let trailing = ids[second..].iter().all(|id| *id == ids[second]);
            if trailing && !turn_sampled {
                return;
            }
            let message = "a second stop token follows the one that was sampled";
            found.tokens(Kind::DoubledStopToken, "token_ids", second..second + 1, message);
            if !turn_sampled && let Some(start) = self.turn_start(second - 1) {
                let message = "the turn ends in a sampled stop token, and counts as not sampled";
                found.tokens(Kind::SampledTurnNotTrained, "sampled_mask", start..second, message);
            }
        }
    }

    /// Where the turn that ends at `stop` begins: behind the last header before it.
    fn turn_start(&self, stop: usize) -> Option<usize> {
        let previous = (0..stop).rev().find(|token| self.markers.is_stop(self.tape.ids[*token])).map_or(0, |at| at + 1);
        (previous..=stop).rev().find(|end| self.markers.header_ends(self.tape.ids, *end))
    }
}
