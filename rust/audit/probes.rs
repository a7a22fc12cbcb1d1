//! The conversations that an audit renders: small, each for one question.

use crate::message::{Conversation, Data, Dict};

pub(super) fn dict<const N: usize>(entries: [(&str, Data); N]) -> Data {
    Data::from(entries.into_iter().collect::<Dict>())
}

pub(super) fn message(role: &str, content: &str) -> Data {
    dict([("role", role.into()), ("content", content.into())])
}

/// An assistant message with reasoning.
pub(super) fn reasoned(reasoning: &str, content: &str) -> Data {
    let fields = [("role", "assistant".into()), ("content", content.into()), ("reasoning_content", reasoning.into())];
    dict(fields)
}

/// An assistant message that calls the tool once for each query.
pub(super) fn calls(content: &str, queries: &[&str]) -> Data {
    let calls: Vec<Data> = (1..).zip(queries).map(|(number, query)| call(number, query)).collect();
    dict([("role", "assistant".into()), ("content", content.into()), ("tool_calls", calls.into())])
}

fn call(number: i64, query: &str) -> Data {
    let arguments = dict([("query", query.into())]);
    let function = dict([("name", "lookup".into()), ("arguments", arguments)]);
    dict([("id", call_id(number)), ("type", "function".into()), ("function", function)])
}

/// Nine characters: some templates insist on it.
fn call_id(number: i64) -> Data {
    format!("call{number:05}").into()
}

/// The result of the tool's call of that number.
pub(super) fn result(number: i64, content: &str) -> Data {
    let fields = [("role", "tool".into()), ("tool_call_id", call_id(number)), ("name", "lookup".into())];
    let mut fields: Dict = fields.into_iter().collect();
    fields.insert("content", content.into());
    fields.into()
}

/// One tool.
pub(super) fn tools() -> Data {
    let query = dict([("type", "string".into()), ("description", "What to look up".into())]);
    let parameters = dict([
        ("type", "object".into()),
        ("properties", dict([("query", query)])),
        ("required", vec![Data::from("query")].into()),
    ]);
    let function =
        dict([("name", "lookup".into()), ("description", "Looks something up".into()), ("parameters", parameters)]);
    vec![dict([("type", "function".into()), ("function", function)])].into()
}

pub(super) fn plain(messages: Vec<Data>) -> Conversation {
    Conversation::new(messages)
}

pub(super) fn with_tools(messages: Vec<Data>) -> Conversation {
    Conversation { tools: Some(tools()), ..Conversation::new(messages) }
}

/// The conversations whose prefixes are checked, by name, the smallest of each kind first.
pub fn scenarios() -> Vec<(&'static str, Conversation)> {
    let user = |text| message("user", text);
    let answer = |text| message("assistant", text);
    vec![
        ("plain", plain(vec![user("one"), answer("first"), user("two"), answer("second")])),
        (
            "system",
            plain(vec![message("system", "rules"), user("one"), answer("first"), user("two"), answer("second")]),
        ),
        ("white space", plain(vec![user("one"), answer("\n first \n"), user("two"), answer("second")])),
        (
            "reasoning",
            plain(vec![user("one"), reasoned("why one", "first"), user("two"), reasoned("why two", "second")]),
        ),
        (
            "inline reasoning",
            plain(vec![user("one"), answer("<think>\nwhy\n</think>\n\nfirst"), user("two"), answer("second")]),
        ),
        (
            "tool call",
            with_tools(vec![
                user("one"),
                calls("", &["a"]),
                result(1, "A"),
                answer("first"),
                user("two"),
                answer("second"),
            ]),
        ),
        (
            "tool call with text",
            with_tools(vec![user("one"), calls("let me see", &["a"]), result(1, "A"), answer("first")]),
        ),
        (
            "two results",
            with_tools(vec![user("one"), calls("", &["a", "b"]), result(1, "A"), result(2, "B"), answer("first")]),
        ),
    ]
}
