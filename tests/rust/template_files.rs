//! The golden files of the repository, for machines without the corpus.

use std::path::Path;

use tokentape::message::Data;
use tokentape::template::Template;

use crate::corpus::{self, Case};
use crate::template_authors::{expected, runs};
use crate::template_goldens::{characters, spans_of};

#[test]
fn every_golden_file_agrees() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/template");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the golden files") {
        let path = entry.expect("a file").path();
        let golden = Data::from_json(&std::fs::read_to_string(&path).expect("text")).expect("JSON");
        agree(&path, &golden);
        count += 1;
    }
    corpus::report(&format!("{count} golden files"));
    assert!(count > 0);
}

fn agree(path: &Path, golden: &Data) {
    let part = |name| golden.get(name).unwrap_or_else(|| panic!("{} has no {name}", path.display()));
    let (wanted, source) = (part("expected"), part("template").as_text().expect("text"));
    let Case { conversation, options } = corpus::case(part("conversation"));
    let result = Template::compile(source).and_then(|template| template.render(&conversation, &options));
    let text = |name| wanted.get(name).and_then(Data::as_text);
    match result {
        Ok(rendered) => {
            assert_eq!(Some(&*rendered.text), text("text"), "{}", path.display());
            assert_eq!(runs(&rendered), expected(wanted, "authors"), "{}", path.display());
            let spans: Vec<_> = rendered.generation_spans.iter().map(|s| characters(&rendered.text, s)).collect();
            assert_eq!(spans, spans_of(wanted.get("generation_spans").expect("spans")), "{}", path.display());
        }
        Err(error) => {
            assert_eq!(error.class(), text("error"), "{}: {error}", path.display());
            assert!(error.class() != Some("TemplateError") || Some(error.message()) == text("message"));
        }
    }
}
