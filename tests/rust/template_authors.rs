//! Who wrote every character of every rendering of the corpus.

use tokentape::author::Author;
use tokentape::message::Data;
use tokentape::template::{RenderOptions, RenderedText};

use crate::corpus::{self, Case, Templates};
use crate::template_goldens::summary;

#[test]
fn every_author_agrees() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let mut templates = Templates::default();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in corpus::lines(&folder.join("authors.jsonl.gz")) {
        let record = Data::from_json(&line).expect("JSON");
        let text = |name| record.get(name).and_then(Data::as_text).expect("text");
        let (template, id) = (text("t"), text("c"));
        let Case { conversation, options } = &cases[id];
        let prompt = record.get("g") == Some(&Data::Int(1));
        let options = RenderOptions { add_generation_prompt: prompt, ..options.clone() };
        let rendered = templates.get(&folder, template).clone().and_then(|t| t.render(conversation, &options));
        let shown = rendered.as_ref().map_or_else(|error| vec![(0, error.to_string())], runs);
        let expected = expected(&record, "runs");
        if shown != expected {
            let at = shown.iter().zip(&expected).take_while(|(a, b)| a == b).count();
            wrong.push(format!("{template} {id}: run {at}: {:?}, expected {:?}", shown.get(at), expected.get(at)));
        }
        count += 1;
    }
    corpus::report(&format!("{count} renderings with authors, {} differ", wrong.len()));
    assert!(count > 0 && wrong.is_empty(), "{}", summary(&wrong));
}

pub(crate) fn expected(record: &Data, name: &str) -> Vec<(usize, String)> {
    let run = |run: &Data| match run.as_items() {
        Some([Data::Int(count), Data::Text(author)]) => (*count as usize, author.to_string()),
        _ => (0, "?".to_owned()),
    };
    record.get(name).and_then(Data::as_items).unwrap_or_default().iter().map(run).collect()
}

/// The spans of a rendering in characters; they partition the text.
pub(crate) fn runs(rendered: &RenderedText) -> Vec<(usize, String)> {
    let mut end = 0;
    let runs = rendered.spans.iter().map(|span| {
        assert_eq!(span.start, end, "spans leave no gap");
        end = span.end;
        let text = &rendered.text[span.start as usize..span.end as usize];
        (text.chars().count(), name(span.author, rendered))
    });
    let runs = runs.collect();
    assert_eq!(end as usize, rendered.text.len(), "spans reach the end");
    runs
}

fn name(author: Author, rendered: &RenderedText) -> String {
    match author {
        Author::Frame => "f".to_owned(),
        Author::Scaffold(message) => format!("s{message}"),
        Author::Value(message, field) => format!("m{message}.{}", rendered.fields.name(field)),
        Author::Tools => "tools".to_owned(),
        Author::Documents => "documents".to_owned(),
    }
}
