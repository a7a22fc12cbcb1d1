//! Prefix stability of every template of the corpus, against what transformers renders.

use std::collections::HashMap;

use tokentape::audit::{Step, Verdict, steps};
use tokentape::message::{Conversation, Data};
use tokentape::template::RenderOptions;

use crate::corpus::{self, Templates};

fn text<'a>(record: &'a Data, name: &str) -> &'a str {
    record.get(name).and_then(Data::as_text).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn every_prefix_check_agrees() {
    let Some(folder) = corpus::folder() else { return };
    let scenarios = std::fs::read_to_string(folder.join("prefix_scenarios.json")).unwrap();
    let scenarios = Data::from_json(&scenarios).unwrap();
    let options = RenderOptions { add_generation_prompt: false, ..corpus::cases(&folder)["01_user"].options.clone() };
    let mut templates = Templates::default();
    let mut known: HashMap<(String, String), Vec<Step>> = HashMap::new();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in corpus::lines(&folder.join("prefix_audit.jsonl.gz")) {
        let record = Data::from_json(&line).unwrap();
        let (name, scenario, check) = (text(&record, "t"), text(&record, "s"), text(&record, "check"));
        let Some(Data::Int(step)) = record.get("k") else { panic!("no step") };
        let found = known.entry((name.to_owned(), scenario.to_owned())).or_insert_with(|| {
            let given = scenarios.get(scenario).unwrap();
            let conversation = Conversation {
                messages: given.get("messages").and_then(Data::as_items).unwrap().to_vec(),
                tools: given.get("tools").filter(|tools| **tools != Data::Null).cloned(),
                ..Conversation::default()
            };
            steps(templates.get(&folder, name).as_ref().unwrap(), &conversation, &options)
        });
        let found = found.iter().find(|found| found.check.name() == check && found.step == *step as usize);
        let verdict = match found.map(|found| &found.verdict) {
            Some(Verdict::Stable) => "ok",
            Some(Verdict::Breaks { .. }) => "break",
            Some(Verdict::Raises(_)) => "error",
            None => "nothing",
        };
        count += 1;
        if verdict != text(&record, "verdict") {
            wrong.push(format!("{name} {scenario} {check} k={step}: {verdict}, expected {}", text(&record, "verdict")));
        }
    }
    corpus::report(&format!("{count} prefix checks, {} differ", wrong.len()));
    assert!(count > 0 && wrong.is_empty(), "{}", wrong.join("\n"));
}
