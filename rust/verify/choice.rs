//! The choice against the fact: loss may leave out sampled tokens, and may not lie on others by accident.

use super::fault::{Found, Kind};
use super::markers::Markers;
use super::tape::{Tape, runs, runs_where};

/// Checks a row whose loss mask is not its sampled mask. A row of which nothing was sampled was given, not collected:
/// loss lies where its author wants it.
pub(super) fn check(tape: &Tape<'_>, markers: &Markers, roles: impl Fn(usize) -> Option<Role>, found: &mut Found) {
    if tape.loss == tape.sampled || !tape.has_samples() {
        return;
    }
    if let Some(first) = moved(tape) {
        let message = "the loss mask stands a place beside the sampled tokens";
        found.tokens(Kind::MaskShifted, "loss_mask", first..first + 1, message);
        return;
    }
    let begin = tape.sampled.iter().position(|sampled| *sampled != 0).unwrap_or_default();
    for run in runs_where(0..tape.ids.len(), |token| tape.loss[token] != 0 && !tape.is_sampled(token)) {
        if found.explains(run.start) {
            continue;
        }
        let (kind, what) = match roles(run.start) {
            _ if run.clone().all(|token| markers.is_pad(tape.ids[token])) => (Kind::PadTokenTrained, "padding"),
            Some(Role::Tool) => (Kind::ToolTextTrained, "the text of a tool"),
            _ if run.start < begin => (Kind::PromptTrained, "text of the prompt"),
            Some(Role::Other) => (Kind::ToolTextTrained, "the text of a message that was not sampled"),
            _ => (Kind::TemplateTextTrained, "text of the template"),
        };
        found.tokens(kind, "loss_mask", run, format!("{what} carries loss"));
    }
    for run in runs(tape.sampled) {
        let last = run.end - 1;
        let trained = run.clone().filter(|token| tape.loss[*token] != 0).count();
        if tape.loss[last] == 0 && trained > 0 && trained + 1 == run.len() && markers.is_stop(tape.ids[last]) {
            let message = "all of the turn carries loss but its stop token";
            found.tokens(Kind::StopTokenNotTrained, "loss_mask", last..run.end, message);
        }
    }
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Assistant,
    Tool,
    Other,
}

/// The first token that differs, where the loss mask is the sampled mask moved by one.
fn moved(tape: &Tape<'_>) -> Option<usize> {
    let (loss, sampled) = (tape.loss, tape.sampled);
    let last = loss.len().checked_sub(1)?;
    let right = loss[0] == 0 && loss[1..] == sampled[..last];
    let left = loss[last] == 0 && loss[..last] == sampled[1..];
    if right || left { loss.iter().zip(sampled).position(|(loss, sampled)| loss != sampled) } else { None }
}
