//! Where a policy begins and stops to sample, the text is cut; where that changes ids, there is a seam.

use std::ops::Range;

use crate::mask::AssistantSpans;
use crate::tokenizer::{Encoded, Tokenizer};
use crate::{Result, TokenId};

/// A place where the ids of the whole text differ from those of the text cut where sampling begins and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seam {
    /// The assistant message whose sampling begins or ends there.
    pub message: u32,
    /// The bytes of the text that both sides encode.
    pub bytes: Range<u32>,
    /// The ids where the text is encoded whole.
    pub parity: Vec<TokenId>,
    /// The ids where it is cut.
    pub rollout: Vec<TokenId>,
}

/// The places where sampling begins and ends, in order, each once.
pub(super) fn cuts(assistants: &[AssistantSpans]) -> Vec<u32> {
    let spans = assistants.iter().flat_map(|assistant| &assistant.spans);
    let mut cuts: Vec<u32> = spans.flat_map(|span| [span.start, span.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Encodes a text cut into pieces. Where `literal` is given, added tokens count only inside its ranges.
pub(super) fn encode(
    tokenizer: &Tokenizer,
    text: &str,
    literal: Option<&[Range<u32>]>,
    cuts: &[u32],
) -> Result<Encoded> {
    let mut whole = Encoded { ids: Vec::new(), starts: Vec::new() };
    let size = text.len() as u32;
    let mut start = 0;
    for end in cuts.iter().copied().filter(|cut| *cut > 0 && *cut < size).chain([size]) {
        let encoded = encode_piece(tokenizer, text, literal, start..end)?;
        if start == 0 && end == size {
            return Ok(encoded);
        }
        whole.ids.extend(encoded.ids);
        whole.starts.extend(encoded.starts);
        start = end;
    }
    Ok(whole)
}

/// Encodes one piece of a text; starts are places in the whole text.
pub(super) fn encode_piece(
    tokenizer: &Tokenizer,
    text: &str,
    literal: Option<&[Range<u32>]>,
    piece: Range<u32>,
) -> Result<Encoded> {
    let part = &text[piece.start as usize..piece.end as usize];
    let mut encoded = match literal {
        None => tokenizer.encode_with_offsets(part)?,
        Some(ranges) => tokenizer.encode_guarded(part, &inside(ranges, piece.clone()))?,
    };
    encoded.starts.iter_mut().for_each(|start| *start += piece.start);
    Ok(encoded)
}

/// The parts of the ranges inside `piece`, counted from its start.
fn inside(ranges: &[Range<u32>], piece: Range<u32>) -> Vec<Range<u32>> {
    let cut = |range: &Range<u32>| {
        let cut = range.start.max(piece.start)..range.end.min(piece.end);
        (!cut.is_empty()).then(|| cut.start - piece.start..cut.end - piece.start)
    };
    ranges.iter().filter_map(cut).collect()
}

/// The places where two encodings of one text differ, each with the message whose cut lies nearest.
pub(super) fn compare(parity: &Encoded, rollout: &Encoded, size: u32, assistants: &[AssistantSpans]) -> Vec<Seam> {
    let start = |encoded: &Encoded, token: usize| encoded.starts.get(token).copied().unwrap_or(size);
    let mut seams = Vec::new();
    let (mut left, mut right) = (0, 0);
    while left < parity.ids.len() && right < rollout.ids.len() {
        let (first_left, first_right) = (left, right);
        (left, right) = (left + 1, right + 1);
        while start(parity, left) != start(rollout, right) {
            if start(parity, left) < start(rollout, right) {
                left += 1;
            } else {
                right += 1;
            }
        }
        let (whole, cut) = (&parity.ids[first_left..left], &rollout.ids[first_right..right]);
        if whole != cut {
            let bytes = start(parity, first_left)..start(parity, left);
            let message = nearest(assistants, &bytes);
            seams.push(Seam { message, bytes, parity: whole.to_vec(), rollout: cut.to_vec() });
        }
    }
    seams
}

/// The message one of whose spans begins or ends nearest to the bytes.
fn nearest(assistants: &[AssistantSpans], bytes: &Range<u32>) -> u32 {
    let distance = |cut: u32| bytes.start.saturating_sub(cut).max(cut.saturating_sub(bytes.end));
    let places = assistants.iter().flat_map(|assistant| {
        assistant.spans.iter().flat_map(|span| [span.start, span.end]).map(|cut| (distance(cut), assistant.message))
    });
    places.min().map_or(0, |(_, message)| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(tokens: &[(TokenId, u32)]) -> Encoded {
        Encoded {
            ids: tokens.iter().map(|token| token.0).collect(),
            starts: tokens.iter().map(|token| token.1).collect(),
        }
    }

    #[test]
    fn a_seam_is_the_shortest_stretch_that_both_encode() {
        let assistants = [AssistantSpans { message: 3, spans: std::iter::once(5..9).collect(), flags: Vec::new() }];
        let parity = encoded(&[(1, 0), (2, 4), (3, 6), (4, 9)]);
        let rollout = encoded(&[(1, 0), (7, 4), (8, 5), (3, 6), (4, 9)]);
        let seams = compare(&parity, &rollout, 10, &assistants);
        assert_eq!(seams, [Seam { message: 3, bytes: 4..6, parity: vec![2], rollout: vec![7, 8] }]);
        assert_eq!(compare(&parity, &parity, 10, &assistants), []);
    }

    #[test]
    fn literal_ranges_follow_the_piece() {
        assert_eq!(inside(&[0..4, 6..9], 2..8), [0..2, 4..6]);
    }
}
