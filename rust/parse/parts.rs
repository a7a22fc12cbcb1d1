//! Whom a part of a turn is for, by its header.

use super::compiled::CompiledParts;

/// Whom a part is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addressee {
    Reasoning,
    Content,
    /// The tool of this name.
    Tool(String),
}

/// Reads a header: the text between the mark that begins a header and the one that begins a body.
pub(super) fn addressee(parts: &CompiledParts, header: &str) -> Addressee {
    if let Some(name) = parts.recipient.as_deref().and_then(|recipient| tool(recipient, &parts.content, header)) {
        return Addressee::Tool(name);
    }
    let reasons = !parts.reasoning.is_empty() && header.contains(&*parts.reasoning);
    if reasons { Addressee::Reasoning } else { Addressee::Content }
}

/// The tool that a header names behind `recipient`, such as `to=functions.`; a name space of another tool is kept.
fn tool(recipient: &str, content: &str, header: &str) -> Option<String> {
    let header = header.trim();
    if recipient.is_empty() {
        let name = header.split_whitespace().next()?;
        return (header != content).then(|| name.to_owned());
    }
    let (key, space) = match recipient.split_once('=') {
        Some((key, space)) => (format!("{key}="), space),
        None => (recipient.to_owned(), ""),
    };
    let at = header
        .match_indices(&*key)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || header[..*at].ends_with(|before: char| before.is_whitespace() || before == '>'))?;
    let name = &header[at + key.len()..];
    let name =
        &name[..name.find(|character: char| character.is_whitespace() || character == '<').unwrap_or(name.len())];
    let name = name.strip_prefix(space).unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}
