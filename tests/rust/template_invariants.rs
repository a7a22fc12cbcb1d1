//! Both halves of the invariant of authors, over every template and conversation of the corpus: spans partition the text,
//! and a change of one message's content changes exactly the bytes whose author that content is.

use tokentape::author::Author;
use tokentape::message::{Conversation, Data, Dict};
use tokentape::template::{RenderOptions, RenderedText};

use crate::corpus::{self, Case, Templates};

/// The conversation whose content holds markers that templates look for: a change of them changes what the template does.
const DEPENDS: &str = "47_think_in_content";

/// Each ASCII letter and digit, one further.
fn shifted(text: &str) -> String {
    let next = |char: char| match char {
        'z' => 'a',
        'Z' => 'A',
        '9' => '0',
        char if char.is_ascii_alphanumeric() => (char as u8 + 1) as char,
        char => char,
    };
    text.chars().map(next).collect()
}

/// The conversation with the content of one message shifted, if it is a text.
fn with_shifted(conversation: &Conversation, index: usize) -> Option<Conversation> {
    let dict = conversation.messages[index].as_dict()?;
    let content = dict.get("content")?.as_text()?;
    let mut changed: Dict = dict.clone();
    changed.insert("content", Data::from(shifted(content)));
    let mut conversation = conversation.clone();
    conversation.messages[index] = Data::from(changed);
    Some(conversation)
}

fn partition(rendered: &RenderedText) -> bool {
    let joined = rendered.spans.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].author != pair[1].author);
    let whole = rendered.spans.last().map_or(0, |span| span.end as usize) == rendered.text.len();
    joined && whole && rendered.spans.first().is_none_or(|span| span.start == 0)
}

/// Whether the bytes that differ are the letters and digits of the content, and no others. The letter of an escape (`\n`)
/// stands for the character that is escaped, which does not change.
fn exact(before: &RenderedText, after: &RenderedText, message: u32) -> bool {
    let (old, new) = (before.text.as_bytes(), after.text.as_bytes());
    let is_own = |author| match author {
        Author::Value(of, field) => of == message && before.fields.name(field) == "content",
        _ => false,
    };
    let escaped = |at: usize| at > 0 && old[at - 1] == b'\\';
    let stays = |at: usize| !old[at].is_ascii_alphanumeric() || escaped(at);
    let right = |at: usize, own: bool| if old[at] == new[at] { !own || stays(at) } else { own };
    let mut spans = before.spans.iter();
    old.len() == new.len() && spans.all(|span| (span.start..span.end).all(|at| right(at as usize, is_own(span.author))))
}

#[test]
fn content_changes_its_own_bytes_and_no_others() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let mut names: Vec<_> =
        std::fs::read_dir(folder.join("templates")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name.to_string_lossy().ends_with(".jinja"));
    let mut templates = Templates::default();
    let (mut count, mut depending, mut wrong) = (0, 0, Vec::new());
    for name in &names {
        let name = name.to_string_lossy();
        let Ok(template) = templates.get(&folder, &name) else { continue };
        for (id, Case { conversation, options }) in &cases {
            let options = RenderOptions { add_generation_prompt: false, ..options.clone() };
            let Ok(before) = template.render(conversation, &options) else { continue };
            assert!(partition(&before), "{name} {id}: spans do not partition the text");
            for index in 0..conversation.messages.len() {
                let Some(changed) = with_shifted(conversation, index) else { continue };
                count += 1;
                let after = template.render(&changed, &options);
                match after.is_ok_and(|after| exact(&before, &after, index as u32)) {
                    true => {}
                    false if id == DEPENDS => depending += 1,
                    false => wrong.push(format!("{name} {id} message {index}")),
                }
            }
        }
    }
    corpus::report(&format!("{count} contents changed, {} inexact, {depending} where templates read it", wrong.len()));
    assert!(count > 0 && wrong.is_empty(), "{} inexact: {:?}", wrong.len(), &wrong[..wrong.len().min(20)]);
}
