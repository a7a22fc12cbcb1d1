//! An audit as plain words and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use super::{Audit, Check, Prefix, Verdict};
use crate::message::{Conversation, Data};
use crate::parse::Grammar;
use crate::render::StopToken;

impl Audit {
    /// The audit in plain words, several lines.
    pub fn to_words(&self) -> String {
        let mut out = format!("Chat template `{}`\n", self.template);
        let stable = "It keeps its prefixes: what was sampled stays in every later prompt.";
        let breaks = "It does not keep its prefixes: tokens of earlier turns change in later prompts.";
        let _ = writeln!(out, "  {}", if self.is_prefix_stable() { stable } else { breaks });
        for check in [Prefix::P1, Prefix::P2, Prefix::P3, Prefix::P4] {
            self.write_check(check, &mut out);
        }
        for finding in &self.findings {
            let _ = writeln!(out, "  It {} {}. {}", finding.kind, finding.what, finding.words);
        }
        self.write_turn_end(&mut out);
        for sentence in self.grammar.iter().flat_map(Grammar::to_words) {
            let _ = writeln!(out, "  {sentence}");
        }
        for seam in &self.seams {
            let _ = writeln!(
                out,
                "  An answer that begins with {:?} changes the prompt's tokens when encoded whole: {:?} instead of {:?}.",
                seam.answer, seam.parity, seam.rollout
            );
        }
        let _ = writeln!(out, "  It uses {}.", self.features.join(", "));
        out
    }

    /// One line for a check, and one for each kind of conversation that breaks it.
    fn write_check(&self, check: Prefix, out: &mut String) {
        let of_check = || self.checks.iter().filter(|found| found.check == check);
        let breaks = of_check().filter(|found| matches!(found.step.verdict, Verdict::Breaks { .. }));
        let raises = of_check().filter(|found| matches!(found.step.verdict, Verdict::Raises(_)));
        let (breaks, raises): (Vec<_>, Vec<_>) = (breaks.collect(), raises.collect());
        let verdict = match (breaks.is_empty(), of_check().count()) {
            (_, 0) => "does not apply",
            (false, _) => "breaks",
            (true, all) if all == raises.len() => "cannot be told",
            (true, _) => "holds",
        };
        let _ = writeln!(out, "  {} ({}): {verdict}", check.name(), check.words());
        for found in breaks {
            let _ =
                writeln!(out, "    breaks with {}, at message {}: {}", found.scenario, found.step.step, change(found));
        }
        for found in raises {
            if let Verdict::Raises(error) = &found.step.verdict {
                let _ = writeln!(out, "    cannot render {}: {error}", found.scenario);
            }
        }
    }

    fn write_turn_end(&self, out: &mut String) {
        let ends: Vec<String> = self.turn_ends.iter().map(|end| format!("{end:?}")).collect();
        match ends.as_slice() {
            [] => out.push_str("  It writes no token at the end of an assistant turn.\n"),
            ends => drop(writeln!(out, "  An assistant turn ends with {}.", ends.join(" or "))),
        }
        if let Some(after) = self.after_turn_end.as_ref().filter(|after| !after.is_empty()) {
            let _ = writeln!(out, "  Between a turn and the next message it writes {after:?}.");
        }
        for stop in &self.stop_tokens {
            let _ =
                writeln!(out, "  Stop token {:?} (id {}): named by {}.", stop.text, stop.id, sources(stop).join(", "));
        }
    }

    /// The audit as JSON.
    pub fn to_json(&self) -> Value {
        let mut checks: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for check in &self.checks {
            checks.entry(check.check.name()).or_default().push(check_json(check));
        }
        let findings = self.findings.iter().map(|finding| {
            json!({
                "kind": finding.kind,
                "what": finding.what,
                "words": finding.words,
                "conversation": conversation_json(&finding.conversation),
                "text": finding.text,
            })
        });
        let stops = self.stop_tokens.iter();
        let stops = stops.map(|stop| json!({"id": stop.id, "text": &*stop.text, "sources": sources(stop)}));
        let seams = self.seams.iter();
        let seams =
            seams.map(|seam| json!({"answer": seam.answer, "parity_ids": seam.parity, "rollout_ids": seam.rollout}));
        json!({
            "template": &*self.template,
            "prefix_stable": self.is_prefix_stable(),
            "checks": checks,
            "findings": findings.collect::<Value>(),
            "turn_ends": self.turn_ends,
            "after_turn_end": self.after_turn_end,
            "stop_tokens": stops.collect::<Value>(),
            "unsafe_seams": seams.collect::<Value>(),
            "grammar": self.grammar,
            "features": self.features,
        })
    }
}

fn sources(stop: &StopToken) -> Vec<&'static str> {
    stop.sources.iter().map(|source| source.name()).collect()
}

/// The texts of a check from where they part, shortened.
fn parted(check: &Check) -> Option<(String, String)> {
    let Verdict::Breaks { at, before, after } = &check.step.verdict else { return None };
    let short = |text: &str| text.get(*at..).unwrap_or_default().chars().take(40).collect::<String>();
    Some((short(before), short(after)))
}

fn change(check: &Check) -> String {
    parted(check).map_or_else(String::new, |(before, after)| format!("{before:?} becomes {after:?}"))
}

fn check_json(check: &Check) -> Value {
    let verdict = match &check.step.verdict {
        Verdict::Stable => "ok",
        Verdict::Breaks { .. } => "break",
        Verdict::Raises(_) => "error",
    };
    let mut entry = json!({"scenario": check.scenario, "step": check.step.step, "verdict": verdict});
    if let Some((before, after)) = parted(check) {
        entry["before"] = before.into();
        entry["after"] = after.into();
    }
    if let Verdict::Raises(error) = &check.step.verdict {
        entry["error"] = error.to_string().into();
    }
    if verdict != "ok" {
        entry["conversation"] = conversation_json(&check.conversation);
    }
    entry
}

/// A conversation as JSON, as `render` takes it.
fn conversation_json(conversation: &Conversation) -> Value {
    let value = |data: &Data| serde_json::from_str(&data.to_json()).unwrap_or(Value::Null);
    let messages: Vec<Value> = conversation.messages.iter().map(value).collect();
    match &conversation.tools {
        Some(tools) => json!({"messages": messages, "tools": value(tools)}),
        None => json!({"messages": messages}),
    }
}
