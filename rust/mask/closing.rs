//! Where the turn of a message ends in a rendering: what a bridge needs of the rule for the mask.

use std::ops::Range;

use super::marker::{is_space, shaped_end};
use super::rendering::{Region, Rendering};
use super::{Masker, Work};
use crate::find::find;
use crate::message::Conversation;
use crate::template::{RenderOptions, RenderedText};

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd {
    /// These bytes are the token that ends it.
    Marker(Range<usize>),
    /// The template writes no such token; what the message wrote ends here.
    Open(usize),
}

impl Masker {
    /// The first turn end at or after the last value byte of message `index`, or after its first byte if it has no value.
    ///
    /// `stops` are texts that end a turn beside those that the template shows; they count only where the message itself
    /// writes them, because elsewhere they may open the next one. Nothing of the message, nor of the one behind it, stands
    /// before the byte `from`. `None`: nothing of the message can be found.
    pub fn turn_end(
        &self,
        conversation: &Conversation,
        options: &RenderOptions,
        rendered: &RenderedText,
        (index, from): (u32, usize),
        stops: &[&str],
    ) -> Option<TurnEnd> {
        let rendering = Rendering::new(rendered);
        let Some(region) = rendering.region_from(index, from) else {
            return rendering.region_from(index + 1, from).map(|next| TurnEnd::Open(next.start));
        };
        let stop = match region.holes.first() {
            None => region.stop,
            Some(hole) => {
                let work = Work { masker: self, conversation, options, full: Rendering::new(rendered), prefill: None };
                let start = work.start(&rendering, index, &region, &mut Vec::new());
                let limit = start.and_then(|start| work.interruption(index, start, &region.holes));
                limit.map_or(hole.start, |limit| limit.min(hole.start))
            }
        };
        Some(self.end_in_region(&rendering, index, &region, stop, stops))
    }

    fn end_in_region(
        &self,
        rendering: &Rendering<'_>,
        index: u32,
        region: &Region,
        stop: usize,
        stops: &[&str],
    ) -> TurnEnd {
        let text = rendering.text;
        let first = text[region.start..].chars().next().map_or(0, char::len_utf8);
        // What interrupts the message may begin where the message does.
        let last = rendering.last_value(index, region.start..stop).unwrap_or(region.start + first).min(stop);
        let tail = &text[last..stop];
        let known = self.turn_ends().chain(stops.iter().copied());
        if let Some((at, length)) = known.filter_map(|marker| Some((find(tail, marker)?, marker.len()))).min() {
            return TurnEnd::Marker(last + at..last + at + length);
        }
        if let Some(marker) = self.end_in_next(rendering, stop) {
            return TurnEnd::Marker(marker);
        }
        let own = &tail[..rendering.scaffold_end(index, last, stop) - last];
        match shaped_end(own, &text[region.start..last]) {
            Some(marker) => TurnEnd::Marker(last + marker.start..last + marker.end),
            None => TurnEnd::Open(last + own.trim_end_matches(is_space).len()),
        }
    }

    /// The turn end that the text directly after a region begins with.
    fn end_in_next(&self, rendering: &Rendering<'_>, stop: usize) -> Option<Range<usize>> {
        let following = &rendering.text[stop..rendering.next_data(stop)];
        let start = stop + following.len() - following.trim_start_matches(is_space).len();
        let marker = self.turn_ends().find(|marker| rendering.text[start..].starts_with(*marker))?;
        Some(start..start + marker.len())
    }
}
