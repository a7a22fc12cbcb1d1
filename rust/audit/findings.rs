//! What a template does to what it is given: what it strips, moves, merges and injects, each with a conversation.

use super::probes::{calls, message, plain, reasoned, result, with_tools};
use crate::author::Author;
use crate::message::Conversation;
use crate::template::{RenderOptions, RenderedText, Template};

/// Something a reader of rendered text would not expect.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// `strips`, `moves`, `merges` or `injects`.
    pub kind: &'static str,
    /// What.
    pub what: &'static str,
    /// The same as a sentence.
    pub words: String,
    /// The smallest conversation that shows it.
    pub conversation: Conversation,
    /// Its text.
    pub text: String,
}

/// One template under examination.
struct Examined<'a> {
    template: &'a Template,
    options: &'a RenderOptions,
    found: Vec<Finding>,
}

/// All findings of a template, in a fixed order.
pub(super) fn examine(template: &Template, options: &RenderOptions) -> Vec<Finding> {
    let mut examined = Examined { template, options, found: Vec::new() };
    examined.stripped();
    examined.moved();
    examined.merged();
    examined.injected();
    examined.found
}

impl Examined<'_> {
    fn render(&self, conversation: &Conversation, add_generation_prompt: bool) -> Option<RenderedText> {
        let options = RenderOptions { add_generation_prompt, ..self.options.clone() };
        self.template.render(conversation, &options).ok()
    }

    /// Notes a finding if the rendering of the conversation satisfies the test.
    fn note(
        &mut self,
        kind: &'static str,
        what: &'static str,
        words: &str,
        conversation: Conversation,
        test: impl Fn(&RenderedText) -> bool,
    ) {
        if let Some(rendered) = self.render(&conversation, false).filter(|rendered| test(rendered)) {
            let words = words.to_owned();
            self.found.push(Finding { kind, what, words, conversation, text: rendered.text });
        }
    }

    fn stripped(&mut self) {
        let user = || message("user", "one");
        let reasoned = || reasoned("why", "first");
        let shown = self.render(&plain(vec![user(), reasoned()]), false).is_some_and(|last| last.text.contains("why"));
        let later = plain(vec![user(), reasoned(), message("user", "two")]);
        if shown {
            self.note(
                "strips",
                "reasoning in history",
                "Reasoning of earlier turns is left out once a user message follows.",
                later,
                |t| !t.text.contains("why"),
            );
        } else {
            let alone = plain(vec![user(), reasoned()]);
            self.note("strips", "reasoning", "The reasoning of a message is never printed.", alone, |t| {
                !t.text.contains("why")
            });
        }
        let inline =
            plain(vec![user(), message("assistant", "<think>\nwhy\n</think>\n\nfirst"), message("user", "two")]);
        self.note(
            "strips",
            "inline reasoning in history",
            "A <think> block in the content of an earlier turn is left out.",
            inline,
            |t| t.text.contains("first") && !t.text.contains("why"),
        );
        let spaced = plain(vec![user(), message("assistant", "\n first \n")]);
        self.note(
            "strips",
            "white space",
            "White space around the content of an assistant message is stripped.",
            spaced,
            |t| t.text.contains("first") && !t.text.contains("\n first \n"),
        );
        let beside = with_tools(vec![user(), calls("let me see", &["aa"])]);
        self.note(
            "strips",
            "content beside tool calls",
            "The content of a message with tool calls is left out.",
            beside.clone(),
            |t| t.text.contains("aa") && !t.text.contains("let me see"),
        );
        self.note("strips", "tool calls", "Tool calls of a message are not printed.", beside, |t| {
            !t.text.contains("aa")
        });
    }

    fn moved(&mut self) {
        let two = with_tools(vec![message("user", "one"), message("assistant", "first"), message("user", "two")]);
        self.note(
            "moves",
            "tools",
            "The tools stand at the last user message, so they move as the conversation goes on.",
            two,
            |t| {
                let tools = first(t, |author| author == Author::Tools);
                matches!((tools, value(t, 1)), (Some(tools), Some(answer)) if tools > answer)
            },
        );
        let system = plain(vec![
            message("system", "rules"),
            message("user", "one"),
            message("assistant", "first"),
            message("user", "two"),
        ]);
        self.note(
            "moves",
            "system message",
            "The system message stands at the last user message.",
            system,
            |t| matches!((value(t, 0), value(t, 2)), (Some(rules), Some(answer)) if rules > answer),
        );
        let called = with_tools(vec![message("user", "one"), calls("let me see", &["aa"]), result(1, "AA")]);
        self.note("moves", "content beside tool calls", "The content of a message with tool calls stands behind the tool's result.", called, |t| {
            matches!((t.text.find("let me see"), t.text.find("AA")), (Some(content), Some(result)) if content > result)
        });
    }

    fn merged(&mut self) {
        let both = with_tools(vec![message("user", "one"), calls("", &["aa", "bb"]), result(1, "AA"), result(2, "BB")]);
        let one = with_tools(vec![message("user", "one"), calls("", &["aa"]), result(1, "AA")]);
        if let (Some(both_text), Some(one_text)) = (self.render(&both, false), self.render(&one, false)) {
            let (end_of_both, end_of_one) = (behind(&both_text.text, "AA"), behind(&one_text.text, "AA"));
            if end_of_one.is_some_and(|end| !end.is_empty() && end_of_both.is_some_and(|text| !text.starts_with(end))) {
                let words = "Adjacent tool results share one turn: pass all results of a turn in one call.".to_owned();
                self.found.push(Finding {
                    kind: "merges",
                    what: "adjacent tool results",
                    words,
                    conversation: both,
                    text: both_text.text,
                });
            }
        }
    }

    fn injected(&mut self) {
        let user = || message("user", "one");
        self.note(
            "injects",
            "a default system prompt",
            "Without a system message the template writes one of its own.",
            plain(vec![user()]),
            |t| {
                let before = value(t, 0).map_or("", |at| &t.text[..at]);
                before.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).count() >= 4
            },
        );
        self.note(
            "injects",
            "an empty reasoning block",
            "An assistant message without reasoning gets an empty reasoning block.",
            plain(vec![user(), message("assistant", "first")]),
            |t| {
                let scaffold: String = t.text.split_whitespace().collect();
                scaffold.contains("<think></think>")
            },
        );
        let open = self.render(&plain(vec![user()]), true).filter(|t| t.text.trim_end().ends_with("<think>"));
        if let Some(rendered) = open {
            let words = "The generation prompt opens a reasoning block, so a sampled turn begins inside it.".to_owned();
            let (conversation, text) = (plain(vec![user()]), rendered.text);
            self.found.push(Finding { kind: "injects", what: "an open reasoning block", words, conversation, text });
        }
    }
}

/// Where a byte stands first whose author satisfies the test.
fn first(rendered: &RenderedText, test: impl Fn(Author) -> bool) -> Option<usize> {
    rendered.spans.iter().find(|span| test(span.author)).map(|span| span.start as usize)
}

/// Where the content of a message stands first.
fn value(rendered: &RenderedText, message: u32) -> Option<usize> {
    first(
        rendered,
        |author| matches!(author, Author::Value(index, field) if index == message && rendered.fields.name(field) == "content"),
    )
}

/// What stands behind a text.
fn behind<'a>(text: &'a str, what: &str) -> Option<&'a str> {
    text.find(what).map(|at| &text[at + what.len()..])
}
