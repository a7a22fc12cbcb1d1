//! Parsing never fails, whatever is sampled: random mutations of turns in every way of writing calls.

use std::sync::Arc;

use serde_json::json;
use tokentape::TokenId;
use tokentape::message::Data;
use tokentape::parse::{Delta, Parser, Prompt, Status, Tools};
use tokentape::render::{RenderSettings, Renderer, Templates};
use tokentape::template::Template;
use tokentape::tokenizer::Tokenizer;

const MARKS: [&str; 12] = [
    "<end>",
    "<think>",
    "</think>",
    "<call>",
    "</call>",
    "<sep>",
    "<user>",
    "<assistant>",
    "<chan>",
    "<msg>",
    "<part>",
    "<q>",
];

fn tokenizer() -> Tokenizer {
    let alphabet = tokenizers::pre_tokenizers::byte_level::ByteLevel::alphabet();
    let mut letters: Vec<char> = alphabet.into_iter().collect();
    letters.sort_unstable();
    let vocab: serde_json::Map<String, serde_json::Value> =
        letters.iter().enumerate().map(|(id, letter)| (letter.to_string(), id.into())).collect();
    let added: Vec<_> = MARKS
        .iter()
        .enumerate()
        .map(|(index, mark)| {
            json!({"id": 256 + index, "content": mark, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": index % 2 == 0})
        })
        .collect();
    let level = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true});
    let file = json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
        "pre_tokenizer": level, "post_processor": level, "decoder": level,
        "model": {"type": "BPE", "vocab": vocab, "merges": []}});
    Tokenizer::from_json(file.to_string().as_bytes()).unwrap()
}

/// A template that writes calls with this body.
fn template(before: &str, body: &str, after: &str) -> String {
    format!(
        "{{% for m in messages %}}<{{{{ m.role }}}}>{{% if m.reasoning_content %}}<think>{{{{ m.reasoning_content }}}}</think>\
         {{% endif %}}{{{{ m.content }}}}{{% if m.tool_calls %}}{before}{{% for c in m.tool_calls %}}\
         {{%- set f = c.function %}}{body}{{% endfor %}}{after}{{% endif %}}<end>{{% endfor %}}\
         {{% if add_generation_prompt %}}<assistant>{{% endif %}}"
    )
}

/// One template for each way of writing calls, and a turn in it.
fn ways() -> Vec<(String, &'static str)> {
    let items = "{% for k, v in f.arguments.items() %}";
    vec![
        (
            template("", "<call>{{ {'name': f.name, 'arguments': f.arguments}|tojson }}</call>", ""),
            "<think>a</think>b<call>{\"name\": \"f\", \"arguments\": {\"a\": [1, \"x\"]}}</call><end>",
        ),
        (
            template("", "<call>{{ f.name }}<sep>{{ f.arguments|tojson }}", ""),
            "b<call>f<sep>{\"a\": {\"b\": null}}<call>g<sep>{}<end>",
        ),
        (
            template(
                "",
                &format!("<call>{{{{ f.name }}}}\n{items}<k={{{{ k }}}}>\n{{{{ v }}}}\n</k>\n{{% endfor %}}</call>"),
                "",
            ),
            "<call>f\n<k=a>\n1\n</k>\n<k=b>\nx\n</k>\n</call><end>",
        ),
        (
            template(
                "<call>[",
                &format!("{{{{ f.name }}}}({items}{{{{ k }}}}='{{{{ v }}}}', {{% endfor %}}), "),
                "]</call>",
            ),
            "<call>[f(a='x', b=[1, {'c': None}]), g()]</call><end>",
        ),
        (
            template(
                "",
                &format!(
                    "<call>call:{{{{ f.name }}}}{{{{ '{{' }}}}{items}{{{{ k }}}}:<q>{{{{ v }}}}<q>,{{% endfor %}}{{{{ '}}' }}}}</call>"
                ),
                "",
            ),
            "<call>call:f{a:<q>x<q>,b:{c:1.5}}</call><end>",
        ),
        (
            template("", "{{ {'name': f.name, 'parameters': f.arguments}|tojson }}", ""),
            "{\"name\": \"f\", \"parameters\": {\"a\": 1}}<end>",
        ),
    ]
}

/// Numbers by chance, the same on every machine.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// A turn with a few ids replaced, left out or put in.
    fn mutate(&mut self, ids: &[TokenId]) -> Vec<TokenId> {
        let mut ids = ids.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(ids.len() + 1);
            let end = (at + self.below(3)).min(ids.len());
            let new: Vec<TokenId> = (0..self.below(3)).map(|_| self.id()).collect();
            ids.splice(at..end, new);
        }
        ids
    }

    /// Marks and the signs of formats more often than other bytes.
    fn id(&mut self) -> TokenId {
        match self.below(3) {
            0 => 256 + self.below(MARKS.len()) as TokenId,
            _ => self.below(256) as TokenId,
        }
    }
}

fn parsers() -> Vec<(Arc<Parser>, Vec<TokenId>)> {
    let parser = |(source, turn): (String, &str)| {
        let templates = Templates::one(Template::compile(&source).unwrap());
        let renderer = Renderer::new(tokenizer(), &templates, Arc::from([]), Vec::new());
        let ids = renderer.tokenizer().encode(turn).unwrap();
        (Arc::new(Parser::learned(&renderer, &RenderSettings::default(), true).unwrap()), ids)
    };
    ways().into_iter().map(parser).collect()
}

fn tools() -> Tools {
    let schemas = r#"[{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties":
        {"a": {"type": "integer"}, "b": {"type": "string"}}}}}]"#;
    Tools::new(Some(&Data::from_json(schemas).unwrap()))
}

/// Parses mutations whole and, one in so many, as a stream that is cut at random.
fn fuzz(count: usize, streams: usize) {
    let parsers = parsers();
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    for number in 0..count {
        let (parser, turn) = &parsers[number % parsers.len()];
        let ids = chance.mutate(turn);
        let message = parser.parse(&ids, tools(), Prompt::Text("<assistant>")).unwrap();
        for call in &message.tool_calls {
            assert!(call.status != Status::Ok || call.arguments.is_some() && call.name.as_deref() == Some("f"));
            assert!(call.tokens.start <= call.tokens.end && call.tokens.end <= ids.len(), "{call:?} in {ids:?}");
        }
        if number % streams == 0 {
            let cut = chance.below(ids.len() + 1);
            let mut stream = parser.stream(tools(), Prompt::Text("<assistant>")).unwrap();
            let mut deltas = stream.push(&ids[..cut]).unwrap();
            deltas.extend(ids[cut..].iter().flat_map(|id| stream.push(&[*id]).unwrap()));
            let (streamed, last) = stream.finish().unwrap();
            assert_eq!(streamed, message, "{ids:?} cut at {cut}");
            deltas.extend(last);
            let content: String = deltas
                .iter()
                .filter_map(|delta| if let Delta::Content(text) = delta { Some(&**text) } else { None })
                .collect();
            assert_eq!(content, message.content, "{ids:?} cut at {cut}");
        }
    }
}

#[test]
fn every_way_is_learned() {
    for ((parser, turn), (source, shown)) in parsers().iter().zip(ways()) {
        let message = parser.parse(turn, Tools::default(), Prompt::Text("<assistant>")).unwrap();
        assert!(!message.tool_calls.is_empty(), "{shown}: {:?}", parser.grammar());
        assert!(message.tool_calls.iter().all(|call| call.status == Status::Ok), "{message:?}\n{source}");
        assert!(message.finished);
    }
}

#[test]
fn mutations_are_read() {
    fuzz(60_000, 4);
}

#[test]
#[ignore = "long: ten million mutations"]
fn ten_million_mutations_are_read() {
    fuzz(10_000_000, 16);
}
