//! Turns, policy versions and message indices against the masks and messages of their row.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::choice::Role;
use super::fault::{Found, Kind};
use super::markers::Markers;
use super::tape::{Tape, TurnSpan};
use crate::arrow::View;

/// The turns are the sampled spans. Only asked of rows that have turns; the first `inherited` tokens may end inside a turn
/// of the parent, which is no turn of the row.
pub(super) fn turns(tape: &Tape<'_>, turns: &[TurnSpan<'_>], inherited: usize, found: &mut Found) {
    if turns.is_empty() {
        return;
    }
    let mut at = 0;
    for (index, turn) in turns.iter().enumerate() {
        let Some(range) = inside(&turn.tokens, at, tape.ids.len()) else {
            let Range { start, end } = turn.tokens;
            let message = format!("turn {index} is tokens {start}..{end}: turns follow one another inside the row");
            found.row(Kind::TurnsDisagree, "turns", message);
            return;
        };
        if let Some(token) = (at.max(inherited)..range.start).find(|token| tape.is_sampled(*token)) {
            report(index, token, "is sampled and belongs to no turn", found);
            return;
        }
        if let Some(token) = range.clone().find(|token| !tape.is_sampled(*token)) {
            report(index, token, "belongs to a turn and is not sampled", found);
            return;
        }
        at = range.end;
    }
    if let Some(token) = (at.max(inherited)..tape.ids.len()).find(|token| tape.is_sampled(*token)) {
        report(turns.len(), token, "is sampled and belongs to no turn", found);
    }
}

fn inside(tokens: &Range<i64>, from: usize, length: usize) -> Option<Range<usize>> {
    let start = usize::try_from(tokens.start).ok().filter(|start| *start >= from)?;
    let end = usize::try_from(tokens.end).ok().filter(|end| *end >= start && *end <= length)?;
    Some(start..end)
}

fn report(turn: usize, token: usize, what: &str, found: &mut Found) {
    found.tokens(Kind::TurnsDisagree, "turns", token..token + 1, format!("the token {what} (at turn {turn})"));
}

/// A turn that was cut by its length, and ends in a stop that counts as sampled.
pub(super) fn cut_turns(tape: &Tape<'_>, turns: &[TurnSpan<'_>], markers: &Markers, found: &mut Found) {
    for turn in turns.iter().filter(|turn| turn.finish_reason == "length") {
        let Some(last) = inside(&turn.tokens, 0, tape.ids.len()).and_then(|tokens| tokens.end.checked_sub(1)) else {
            continue;
        };
        if markers.is_stop(tape.ids[last]) && tape.is_sampled(last) {
            let message = "the turn was cut by its length, and its stop token counts as sampled";
            found.tokens(Kind::StopAfterLength, "sampled_mask", last..last + 1, message);
        }
    }
}

/// The runs of policy versions cover the sampled tokens and nothing else.
pub(super) fn versions(view: &View<'_>, row: usize, tape: &Tape<'_>, found: &mut Found) {
    let Some(range) = view.policy_versions.range(row) else { return };
    let numbers = |name| view.policy_versions.int32(name).unwrap_or_default();
    let (starts, ends) = (numbers("start"), numbers("end"));
    let (mut at, mut covered) = (0, 0);
    for item in range {
        let tokens = inside(&(i64::from(starts[item])..i64::from(ends[item])), at, tape.ids.len());
        let Some(tokens) = tokens.filter(|tokens| tokens.clone().all(|token| tape.is_sampled(token))) else {
            let message = format!("the run {}..{} covers tokens that were not sampled", starts[item], ends[item]);
            found.row(Kind::VersionsDisagree, "policy_versions", message);
            return;
        };
        covered += tokens.len();
        at = tokens.end;
    }
    let sampled = tape.sampled.iter().filter(|sampled| **sampled != 0).count();
    if covered != sampled {
        let message = format!("the runs cover {covered} of {sampled} sampled tokens");
        found.row(Kind::VersionsDisagree, "policy_versions", message);
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Option<std::borrow::Cow<'a, str>>,
}

/// Whether the texts are JSON; the roles of the messages.
pub(super) fn roles(view: &View<'_>, row: usize, found: &mut Found) -> Vec<Role> {
    for column in ["metrics", "tools", "provenance"] {
        let text = view.text(column).map_or("null", |texts| texts.value(row));
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            found.row(Kind::InvalidJson, column, format!("`{column}` is not JSON text: {error}"));
        }
    }
    let text = view.text("messages").map_or("[]", |texts| texts.value(row));
    match serde_json::from_str::<Option<Vec<Message<'_>>>>(text) {
        Ok(messages) => messages.unwrap_or_default().iter().map(|message| role(message.role.as_deref())).collect(),
        Err(error) => {
            found.row(Kind::InvalidJson, "messages", format!("`messages` is not a JSON list of messages: {error}"));
            Vec::new()
        }
    }
}

fn role(name: Option<&str>) -> Role {
    match name {
        Some("assistant" | "model") => Role::Assistant,
        Some("tool" | "function" | "ipython") => Role::Tool,
        _ => Role::Other,
    }
}

/// Every token belongs to a message that is there, or to none.
pub(super) fn message_index(view: &View<'_>, row: usize, messages: usize, found: &mut Found) {
    let index = view.message_index.get(row).unwrap_or_default();
    // Without messages the index says which lists of ids belong together, and nothing more.
    let limit = if messages == 0 { i32::MAX } else { messages as i32 };
    let wrong = |value: i32| value < -1 || value >= limit;
    if index.iter().fold(false, |any, value| any | wrong(*value)) {
        let at = index.iter().position(|value| wrong(*value)).unwrap_or_default();
        let message = format!("the token belongs to message {}, and the row has {messages}", index[at]);
        found.tokens(Kind::MessageIndexWrong, "message_index", at..at + 1, message);
    }
}
