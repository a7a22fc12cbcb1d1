//! What a policy stops with, as a template shows it: not every text that ends a turn in history ends a sampling.

use super::rendering::Rendering;
use super::turn_end::{dict, tools};
use super::{Masker, TurnEnd};
use crate::message::{Conversation, Data};
use crate::template::RenderOptions;

fn asked_and(answer: Data) -> Vec<Data> {
    vec![dict([("role", Data::from("user")), ("content", Data::from("Uu"))]), answer]
}

impl Masker {
    /// The texts with which a policy ends a turn.
    ///
    /// Those that plain turns show, but for one that also stands between the reasoning and the content of a turn: a
    /// policy that stopped there would never answer. And the one that ends a turn with a tool call.
    pub fn stop_texts(&self) -> Vec<String> {
        let options = RenderOptions { special_tokens: self.special_tokens.clone(), ..RenderOptions::default() };
        let between = self.between_reasoning_and_content(&options).unwrap_or_default();
        let shown = self.shown_turn_ends();
        let mut stops: Vec<String> = shown.iter().filter(|end| !between.contains(&***end)).cloned().collect();
        if let Some(end) = self.call_end(&options).filter(|end| !shown.is_empty() && !stops.contains(end)) {
            stops.push(end);
        }
        stops
    }

    /// What one turn holds between its reasoning and its content.
    fn between_reasoning_and_content(&self, options: &RenderOptions) -> Option<String> {
        let fields = [("role", "assistant"), ("content", "Aa"), ("reasoning_content", "Rr")];
        let answer = dict(fields.map(|(name, text)| (name, Data::from(text))));
        let rendered = self.template.render(&Conversation::new(asked_and(answer)), options).ok()?;
        let rendering = Rendering::new(&rendered);
        let whole = 0..rendered.text.len();
        let (first, last) = (rendering.first_value(1, whole.clone())?, rendering.last_value(1, whole)?);
        Some(rendered.text[first..last].to_owned())
    }

    /// What the template writes at the very end of a turn with a tool call.
    fn call_end(&self, options: &RenderOptions) -> Option<String> {
        let arguments = dict([("q", Data::from("Qq"))]);
        let function = dict([("name", Data::from("t")), ("arguments", arguments)]);
        let call = [("id", Data::from("call00001")), ("type", Data::from("function")), ("function", function)];
        let calls = Data::from(vec![dict(call)]);
        let fields = [("role", Data::from("assistant")), ("content", Data::from("")), ("tool_calls", calls)];
        let conversation = Conversation { tools: Some(tools()), ..Conversation::new(asked_and(dict(fields))) };
        let rendered = self.template.render(&conversation, options).ok()?;
        let TurnEnd::Marker(end) = self.turn_end(&conversation, options, &rendered, (1, 0), &[])? else { return None };
        rendered.text[end.end..].trim().is_empty().then(|| rendered.text[end].to_owned())
    }
}
