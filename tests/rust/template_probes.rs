//! One-line templates, each for one rule of the language, against what transformers gives.

use tokentape::message::{Conversation, Data, Dict};
use tokentape::template::{RenderOptions, Template};

use crate::corpus;
use crate::template_goldens::summary;

#[test]
fn every_probe_agrees() {
    let Some(folder) = corpus::folder() else { return };
    let lines = corpus::lines(&folder.join("micro_probes.jsonl"));
    let context = Data::from_json(&lines[0]).expect("JSON");
    let context = context.get("context").and_then(Data::as_dict).expect("a context");
    let mut arguments: Vec<_> = entries(context);
    arguments.push(("fn".into(), Data::Float(f64::NAN)));
    arguments.push(("fi".into(), Data::Float(f64::INFINITY)));
    let conversation = Conversation { arguments, ..Conversation::default() };
    let options = RenderOptions { now: Some(corpus::CLOCK), ..RenderOptions::default() };
    let mut wrong = Vec::new();
    for line in &lines[1..] {
        let probe = Data::from_json(line).expect("JSON");
        let text = |name| probe.get(name).and_then(Data::as_text).expect("text");
        let (template, expected) = (text("template"), text("hf"));
        let result = Template::compile(template).and_then(|template| template.render(&conversation, &options));
        let shown = match &result {
            Ok(rendered) => Python(&rendered.text).to_string(),
            Err(error) => format!("ERR {}", error.class().unwrap_or("?")),
        };
        let agrees = shown == expected || (shown.starts_with("ERR ") && expected.starts_with(&format!("{shown} ")));
        if !agrees {
            let why = result.err().map_or_else(String::new, |error| format!(" {error}"));
            wrong.push(format!("{template} -> {shown}{why}, expected {expected}"));
        }
    }
    corpus::report(&format!("{} probes, {} differ", lines.len() - 1, wrong.len()));
    assert!(wrong.is_empty(), "{}", summary(&wrong));
}

fn entries(dict: &Dict) -> Vec<(std::sync::Arc<str>, Data)> {
    dict.iter().map(|(key, value)| (key.as_text().expect("text").into(), value.clone())).collect()
}

/// A text as Python's `repr` shows it.
struct Python<'t>(&'t str);

impl std::fmt::Display for Python<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let conversation = Conversation {
            arguments: vec![("text".into(), Data::List(vec![Data::from(self.0)].into()))],
            ..Conversation::default()
        };
        let template = Template::compile("{{ text }}").expect("a template");
        let shown = template.render(&conversation, &RenderOptions::default()).expect("a text").text;
        f.write_str(&shown[1..shown.len() - 1])
    }
}
