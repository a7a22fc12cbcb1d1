//! A rendering that goes on from an earlier one gives what a full rendering gives.

use std::sync::Arc;

use tokentape::message::{Conversation, Data};
use tokentape::template::{Checkpoint, ContinueFinalMessage, RenderOptions, Template};

use crate::corpus::{self, CLOCK, Case, Templates};

/// A conversation that grows by a message at a time: how often a rendering went on from the one before.
fn grow(template: &Template, conversation: &Conversation, options: &RenderOptions) -> (usize, usize) {
    let mut from: Option<Checkpoint> = None;
    let (mut renderings, mut resumed) = (0, 0);
    for count in 1..=conversation.messages.len() {
        let messages = conversation.messages[..count].to_vec();
        let part = Arc::new(Conversation { messages, ..conversation.clone() });
        let full = template.render(&part, options);
        match (template.render_from(&part, options, from.as_ref()), full) {
            (Ok(one), Ok(full)) => {
                assert_eq!(one.text, full, "{count} messages");
                resumed += usize::from(one.taken_over > 0);
                from = one.checkpoint().or(from);
            }
            (Err(one), Err(full)) => assert_eq!(one.to_string(), full.to_string(), "{count} messages"),
            (one, full) => panic!("{count} messages: {:?}, in full {full:?}", one.map(|one| one.text)),
        }
        renderings += 1;
    }
    (renderings, resumed)
}

#[test]
fn every_template_goes_on_as_it_would_have_begun() {
    let Some(folder) = corpus::folder() else { return };
    let cases = corpus::cases(&folder);
    let mut templates = Templates::default();
    let (mut renderings, mut resumed) = (0, 0);
    let mut paths: Vec<_> = std::fs::read_dir(folder.join("templates")).expect("templates").flatten().collect();
    paths.sort_by_key(std::fs::DirEntry::file_name);
    for path in paths.iter().map(std::fs::DirEntry::path).filter(|path| path.extension().is_some_and(|e| e == "jinja"))
    {
        let name = path.file_name().and_then(std::ffi::OsStr::to_str).expect("a name");
        let Ok(template) = templates.get(&folder, name) else { continue };
        for Case { conversation, options } in cases.values() {
            let options = RenderOptions {
                add_generation_prompt: true,
                continue_final_message: ContinueFinalMessage::No,
                ..options.clone()
            };
            let (all, some) = grow(template, conversation, &options);
            renderings += all;
            resumed += some;
        }
    }
    corpus::report(&format!("{renderings} growing renderings, {resumed} went on from the one before"));
    assert!(resumed > 20_000, "{resumed} of {renderings}");
}

fn message(role: &str, content: &str) -> Data {
    Data::from_json(&format!(r#"{{"role": "{role}", "content": "{content}"}}"#)).expect("JSON")
}

fn options() -> RenderOptions {
    RenderOptions { now: Some(CLOCK), ..RenderOptions::default() }
}

/// How many iterations a rendering of `after` takes over from one of `before`; both are what a full one gives.
fn taken_over(source: &str, before: &[Data], after: &[Data]) -> usize {
    let template = Template::compile(source).expect("a template");
    let options = options();
    let conversation = |messages: &[Data]| Arc::new(Conversation::new(messages.to_vec()));
    let first = template.render_from(&conversation(before), &options, None).expect("a text");
    let second = template.render_from(&conversation(after), &options, first.checkpoint().as_ref()).expect("a text");
    assert_eq!(first.text, template.render(&conversation(before), &options).expect("a text"), "{source}");
    assert_eq!(second.text, template.render(&conversation(after), &options).expect("a text"), "{source}");
    second.taken_over
}

#[test]
fn what_depends_on_later_messages_is_done_again() {
    let all: Vec<Data> = ["one", "two", "three", "four", "five"].map(|text| message("user", text)).into();
    let taken = |source: &str| taken_over(source, &all[..3], &all);
    let around =
        |body: &str| format!("{{% set ns = namespace(n=0, last='') %}}{{% for m in messages %}}{body}{{% endfor %}}");
    let expected = [
        ("{{ m.content }}", 3),
        ("{{ loop.index }}{% set ns.n = ns.n + 1 %}{{ ns.n }}", 3),
        ("{{ ns.last }}{% set ns.last = m.content %}", 3),
        ("{{ m.content }}{% if not loop.last %},{% endif %}", 2),
        ("{{ m.content }}{% if loop.nextitem is defined %},{% endif %}", 2),
        ("{{ messages[loop.index0 + 1] is defined }}", 2),
        ("{{ loop.previtem.content if loop.previtem is defined else '-' }}{{ m.content }}", 3),
        ("{{ messages[0].content }}{{ m.content }}", 3),
        ("{{ m.content }}{{ messages | length }}", 0),
        ("{{ m.content }}{{ messages[-1].content }}", 0),
        ("{{ m.content }}{{ loop.length }}", 0),
        ("{{ loop.revindex }}{{ m.content }}", 0),
        ("{{ m.content }}{{ m in messages }}{{ messages == [] }}", 0),
        ("{% for n in messages %}{{ n.content }}{% endfor %}", 0),
        ("{{ loop.changed(m.role) }}", 0),
        ("{{ loop }}", 0),
        ("{% break %}", 0),
        ("{% if loop.index == 3 %}{% break %}{% endif %}{{ m.content }}", 2),
    ];
    for (body, iterations) in expected {
        assert_eq!(taken(&around(body)), iterations, "{body}");
    }
}

#[test]
fn a_loop_that_begins_otherwise_is_done_again() {
    let all: Vec<Data> = ["one", "two", "three"].map(|text| message("user", text)).into();
    let body = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let before = [
        ("{{ messages | length }}", 0),
        ("{% set last = messages[-1] %}", 0),
        ("{% set count = messages | length %}", 0),
        ("{% set j = joiner() %}", 0),
        ("{% set rest = messages[1:] %}", 2),
        ("{% set first = messages[0] %}{% set names = ['a', {'b': first}] %}{% macro f() %}{% endmacro %}", 2),
        ("{% set users = messages | selectattr('role', 'equalto', 'tool') | list %}", 2),
        ("{% set users = messages | selectattr('role', 'equalto', 'user') | list %}", 0),
        ("{% set users = messages | selectattr('role', 'equalto', 'user') %}", 0),
    ];
    for (start, iterations) in before {
        assert_eq!(taken_over(&format!("{start}{body}"), &all[..2], &all), iterations, "{start}");
    }
    assert_eq!(taken_over(&format!("{{% with x = 1 %}}{body}{{% endwith %}}"), &all[..2], &all), 0);
}

#[test]
fn the_first_statements_are_done_once() {
    let all: Vec<Data> = ["one", "two", "three"].map(|text| message("user", text)).into();
    let body = "{% for m in messages %}{{ m.content }}{{ x }}{% endfor %}";
    let statements = |start: &str, after: &[Data]| {
        let template = Template::compile(&format!("{start}{body}")).expect("a template");
        let conversation = |messages: &[Data]| Conversation {
            tools: Some(Data::from_json("[1, 2]").expect("JSON")),
            ..Conversation::new(messages.to_vec())
        };
        let before = Arc::new(conversation(&all[..2]));
        let after = Arc::new(Conversation { messages: after.to_vec(), ..Conversation::clone(&before) });
        let first = template.render_from(&before, &options(), None).expect("a text");
        let second = template.render_from(&after, &options(), first.checkpoint().as_ref()).expect("a text");
        let third = template.render_from(&after, &options(), second.checkpoint().as_ref()).expect("a text");
        for rendering in [&second, &third] {
            assert_eq!(rendering.text, template.render(&after, &options()).expect("a text"), "{start}");
        }
        (second.statements, third.statements)
    };
    let expected = [
        ("{% if tools %}{{ tools | tojson }}{% endif %}", 1),
        ("{% for tool in tools %}{{ tool }}{% endfor %}{% set x = 1 %}", 2),
        ("{% set x = messages[0].content %}{% if x %}{{ x }}{% endif %}", 2),
        ("{% if tools %}a{% endif %}{% set x = messages | length %}{% if true %}b{% endif %}", 1),
        ("{% macro f(a) %}{{ a }}{{ x }}{% endmacro %}{% set x = 2 %}{% if x %}{{ f(x) }}{% endif %}", 3),
        ("{% macro f() %}a{% endmacro %}{% macro f() %}b{% endmacro %}{% if true %}{{ f() }}{% endif %}", 3),
        ("{% macro f() %}a{% endmacro %}{% set x = f %}{% if true %}b{% endif %}", 1),
        ("{% if true %}a{% endif %}{% set x = namespace(a=1) %}{% if true %}b{% endif %}", 1),
        ("{% set x = joiner() %}{% if true %}b{% endif %}", 0),
        ("{% set x = messages[1:] %}{% if true %}b{% endif %}", 0),
        ("{% for m in messages if m.role == 'tool' %}a{% endfor %}{% if true %}b{% endif %}", 0),
        ("{% if true %}{% for m in messages %}a{% endfor %}{% endif %}{% if true %}b{% endif %}", 0),
        ("{% generation %}a{% endgeneration %}{% if true %}b{% endif %}", 2),
    ];
    for (start, count) in expected {
        assert_eq!(statements(start, &all), (count, count), "{start}");
    }
    let replaced = [message("user", "other"), all[1].clone(), all[2].clone()];
    assert_eq!(
        statements("{% if tools %}{{ tools }}{% endif %}{% if messages[0].content %}b{% endif %}", &replaced),
        (0, 2)
    );
}

#[test]
fn what_goes_into_a_namespace_inside_a_list_or_dict_is_not_lost() {
    let all: Vec<Data> = ["one", "two", "three"].map(|text| message("user", text)).into();
    let body =
        "{% for m in messages %}{% set inner = outer[0] %}{% set inner.n = inner.n + 1 %}{{ inner.n }}{% endfor %}";
    for outer in ["[namespace(n=0)]", "(namespace(n=0),)", "{0: namespace(n=0)}", "[namespace(n=0), [namespace(n=0)]]"]
    {
        assert_eq!(taken_over(&format!("{{% set outer = {outer} %}}{body}"), &all[..2], &all), 0, "{outer}");
    }
}

#[test]
fn a_message_that_was_replaced_is_read_again() {
    let all: Vec<Data> = ["one", "two", "three"].map(|text| message("user", text)).into();
    let replaced = |place: usize| {
        let mut messages = all.clone();
        messages[place] = message("user", "other");
        messages
    };
    let plain = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let ahead = "{% set last = messages[-1] %}{% for m in messages %}{% if loop.index < 3 %}{{ last.content }}{% endif %}\
                 {% if loop.last %}!{% endif %}{% endfor %}";
    assert_eq!(taken_over(plain, &all[..2], &replaced(2)), 2);
    assert_eq!(taken_over(plain, &all[..2], &replaced(1)), 0);
    assert_eq!(taken_over(plain, &all, &all[..2]), 0);
    assert_eq!(taken_over(ahead, &all, &replaced(2)), 0);
    assert_eq!(taken_over(ahead, &all, &all), 2);
}

#[test]
fn other_options_and_arguments_are_seen() {
    let template =
        Template::compile("{% for m in messages %}{{ m.content }}{{ x }}{{ tools }}{% endfor %}").expect("it");
    let one = Conversation {
        arguments: vec![(Arc::from("x"), Data::Int(1))],
        ..Conversation::new(vec![message("user", "a")])
    };
    let first = template.render_from(&Arc::new(one.clone()), &options(), None).expect("a text");
    let again = |conversation: &Conversation, options: &RenderOptions| {
        let shared = Arc::new(conversation.clone());
        let result = template.render_from(&shared, options, first.checkpoint().as_ref()).expect("a text");
        assert_eq!(result.text, template.render(conversation, options).expect("a text"));
        result.taken_over
    };
    assert_eq!(
        again(
            &one,
            &RenderOptions { special_tokens: [(Arc::from("eos_token"), Data::from("</s>"))].into(), ..options() }
        ),
        0
    );
    assert_eq!(again(&Conversation { arguments: vec![(Arc::from("x"), Data::Int(2))], ..one.clone() }, &options()), 0);
    assert_eq!(again(&Conversation { tools: Some(Data::from(vec![Data::Int(1)])), ..one.clone() }, &options()), 0);
    assert_eq!(again(&one, &RenderOptions { add_generation_prompt: true, ..options() }), 0);
    assert_eq!(again(&one, &RenderOptions { now: None, ..options() }), 0);
}

#[test]
fn whoever_holds_a_place_alone_goes_on_in_its_memory() {
    let all: Vec<Data> = ["one", "two", "three", "four"].map(|text| message("user", text)).into();
    let source = "{% if tools %}{{ tools }}{% endif %}{{ x }}{% for m in messages %}{{ x }}{{ m.content }}\
                  {% if m.content == 'bad' %}{{ raise_exception('bad') }}{% endif %}{% endfor %}{{ x }}";
    let template = Template::compile(source).expect("a template");
    let tools = Some(Data::from_json("[1, 2]").expect("JSON"));
    let conversation = |messages: &[Data]| {
        Arc::new(Conversation {
            tools: tools.clone(),
            arguments: vec![(Arc::from("x"), Data::from("(argument)"))],
            ..Conversation::new(messages.to_vec())
        })
    };
    let go_on = |messages: &[Data], from: &Checkpoint| {
        let conversation = conversation(messages);
        let rendering = template.render_from(&conversation, &options(), Some(from)).expect("a text");
        assert_eq!(rendering.text, template.render(&conversation, &options()).expect("a text"));
        rendering.taken_over
    };
    let other = [all[0].clone(), all[1].clone(), message("tool", "other"), all[2].clone()];
    let place = || {
        let first = template.render_from(&conversation(&all[..2]), &options(), None).expect("a text");
        first.into_checkpoint().expect("a place")
    };
    // Two hold it: each goes on.
    let (one, two) = (place(), place());
    let held = one.clone();
    assert_eq!((go_on(&all, &one), go_on(&other, &held)), (2, 2));
    drop(held);
    // One alone: the first goes on, and who comes later renders in full.
    assert_eq!((go_on(&all[..3], &one), go_on(&other, &one)), (2, 0));
    // What does not begin the same way leaves the place as it was, and what fails behind it leaves none.
    assert_eq!((go_on(&other[2..], &two), go_on(&all[..2], &two)), (0, 2));
    let three = place();
    let bad = [&all[..2], &[message("user", "bad")]].concat();
    template.render_from(&conversation(&bad), &options(), Some(&three)).expect_err("the template refuses");
    assert_eq!(go_on(&all, &three), 0);
}

#[test]
fn messages_last_first_are_a_list_like_any_other() {
    let all: Vec<Data> = ["one", "two", "three", "four"].map(|text| message("user", text)).into();
    let template = |list: &str| {
        let source =
            format!("{{% set l = {list} %}}{{{{ l | map(attribute='content') | join(' ') }}}} {{{{ l | length }}}}");
        Template::compile(&source)
            .expect("a template")
            .render(&Conversation::new(all.clone()), &options())
            .expect("a text")
            .text
    };
    let expected = [
        ("messages[::-1]", "four three two one 4"),
        ("messages[2:0:-1]", "three two 2"),
        ("messages[0:2:-1]", " 0"),
        ("messages[-2::-1]", "three two one 3"),
        ("messages[::-2]", "four two 2"),
        ("messages[::-1][1:3]", "three two 2"),
        ("messages[::-1][:2]", "four three 2"),
        ("messages[::-1][3:]", "one 1"),
        ("messages[::-1][::-1]", "one two three four 4"),
        ("messages[::-1][2:0:-1]", "two three 2"),
        ("messages[::-1] | reverse | list", "one two three four 4"),
        ("messages[::-1] + messages[:1]", "four three two one one 5"),
        (
            "[messages[::-1] | first, messages[::-1] | last, messages[::-1][1], messages[::-1][-2]]",
            "four one three two 4",
        ),
        ("messages[::-1] if messages[::-1] == messages | reverse | list else []", "four three two one 4"),
        (
            "messages[::-1] if messages[0] in messages[::-1] and messages[::-1] is not sameas messages[::-1] else []",
            "four three two one 4",
        ),
    ];
    for (list, text) in expected {
        assert_eq!(template(list), text, "{list}");
    }
    let loops = "{% for m in messages[::-1] %}{{ loop.index }}/{{ loop.length }}{{ m.content }}\
                 {{ loop.nextitem.content if loop.nextitem is defined }}{{ '.' if loop.last }}{% endfor %}";
    assert_eq!(taken_over(loops, &all[..2], &all), 0);
}
