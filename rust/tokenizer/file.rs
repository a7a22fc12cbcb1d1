//! What the fast path reads of a `tokenizer.json`, and which files it models.
//!
//! *Invariant*: a file with any setting that is not modelled here is refused, with the reason; none is guessed.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::merges::ID_LIMIT;
use super::split::{Behavior, Splitter, Stage};
use crate::TokenId;

/// Why a file is left to the reference.
pub(super) type Refusal = String;

/// A file, read once for both paths.
pub(super) struct File<'a> {
    /// All but the model.
    pub(super) rest: Map<String, Value>,
    pub(super) model: Model<'a>,
}

/// A BPE model.
#[derive(Deserialize)]
pub(super) struct Model<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    pub(super) dropout: Option<f32>,
    pub(super) unk_token: Option<String>,
    pub(super) continuing_subword_prefix: Option<String>,
    pub(super) end_of_word_suffix: Option<String>,
    pub(super) fuse_unk: Option<bool>,
    pub(super) byte_fallback: Option<bool>,
    pub(super) ignore_merges: Option<bool>,
    #[serde(borrow)]
    pub(super) vocab: Vocab<'a>,
    #[serde(borrow)]
    pub(super) merges: Vec<Merge<'a>>,
}

/// How text becomes pieces.
pub(super) enum Shape {
    /// The stages of a byte-level split, and whether the text is normalised to form C.
    ByteLevel { splitter: Splitter, nfc: bool },
    /// Spaces become `▁`, one of which may also be put before the text.
    Spaces { prepend: bool },
}

impl<'a> File<'a> {
    pub(super) fn parse(json: &'a [u8]) -> Result<Self, Refusal> {
        let file: Self =
            serde_json::from_slice(json).map_err(|error| format!("the model is not read as BPE: {error}"))?;
        file.model.check()?;
        Ok(file)
    }

    /// The shape, if everything the file says is modelled.
    pub(super) fn shape(&self) -> Result<Shape, Refusal> {
        if self.model.byte_fallback == Some(true) { self.spaces() } else { self.byte_level() }
    }

    /// The file without its vocabulary and merges.
    pub(super) fn settings(&self) -> String {
        let model = &self.model;
        serde_json::json!({"normalizer": self.part("normalizer"), "pre_tokenizer": self.part("pre_tokenizer"), "model": {
            "type": model.kind, "byte_fallback": model.byte_fallback, "ignore_merges": model.ignore_merges,
            "vocab": {}, "merges": []}})
        .to_string()
    }

    fn part(&self, name: &str) -> Option<&Value> {
        self.rest.get(name)
    }

    /// Whether a pretoken that is in the vocabulary is taken whole.
    pub(super) fn ignore_merges(&self) -> bool {
        self.model.ignore_merges == Some(true)
    }

    fn byte_level(&self) -> Result<Shape, Refusal> {
        let normalizers = flat(self.part("normalizer"), "normalizers");
        let kinds: Vec<&str> = normalizers.iter().map(|normalizer| kind(normalizer)).collect();
        let nfc = match kinds.as_slice() {
            [] => false,
            ["NFC"] => true,
            kinds => return Err(format!("the normalizer {kinds:?} is not modelled for byte-level models")),
        };
        let mut steps = flat(self.part("pre_tokenizer"), "pretokenizers");
        let level = steps.pop().filter(|step| kind(step) == "ByteLevel");
        let level = level.ok_or("the pre-tokenizer does not end in ByteLevel")?;
        if level["add_prefix_space"] != Value::Bool(false) {
            return Err("ByteLevel adds a space before the text".to_owned());
        }
        let mut stages = steps.into_iter().map(stage).collect::<Result<Vec<Stage>, Refusal>>()?;
        if level.get("use_regex").is_none_or(|setting| *setting != Value::Bool(false)) {
            stages.push(Splitter::gpt2_stage());
        }
        let splitter = Splitter::of(stages).map_err(|error| error.to_string())?;
        Ok(Shape::ByteLevel { splitter, nfc })
    }

    fn spaces(&self) -> Result<Shape, Refusal> {
        if self.ignore_merges() {
            return Err("byte_fallback with ignore_merges is not modelled".to_owned());
        }
        let is_prepend = |step: &Value| kind(step) == "Prepend" && step["prepend"] == "▁";
        let is_replace =
            |step: &Value| kind(step) == "Replace" && step["pattern"]["String"] == " " && step["content"] == "▁";
        let prepend = match flat(self.part("normalizer"), "normalizers").as_slice() {
            [replace] if is_replace(replace) => false,
            [prepend, replace] if is_prepend(prepend) && is_replace(replace) => true,
            _ => return Err("byte_fallback without the normalizer that makes ▁ of spaces".to_owned()),
        };
        // A split on the spaces that the normalizer has replaced cuts nothing.
        let idle = |step: &&Value| kind(step) == "Split" && step["pattern"]["String"] == " ";
        if flat(self.part("pre_tokenizer"), "pretokenizers").iter().all(idle) {
            Ok(Shape::Spaces { prepend })
        } else {
            Err("byte_fallback with a pre-tokenizer that cuts".to_owned())
        }
    }
}

impl Model<'_> {
    fn check(&self) -> Result<(), Refusal> {
        let affix = |affix: &Option<String>| affix.as_deref().is_some_and(|text| !text.is_empty());
        if self.kind.as_deref() != Some("BPE") {
            Err(format!("the model is {:?}, not BPE", self.kind))
        } else if self.dropout.is_some_and(|dropout| dropout != 0.0) {
            Err("the model drops merges at random".to_owned())
        } else if affix(&self.continuing_subword_prefix) || affix(&self.end_of_word_suffix) {
            Err("the model marks the inside or the end of words".to_owned())
        } else if self.vocab.0.iter().any(|(_, id)| !(0..ID_LIMIT).contains(id)) {
            Err(format!("the model has ids that are not from 0 to {}", ID_LIMIT - 1))
        } else if self.merges.windows(2).any(|two| two[0].is_pair != two[1].is_pair) {
            Err("the model spells merges in two ways".to_owned())
        } else {
            Ok(())
        }
    }
}

fn kind(step: &Value) -> &str {
    step["type"].as_str().unwrap_or("")
}

/// The steps of a possibly nested sequence, in order.
fn flat<'v>(step: Option<&'v Value>, list: &str) -> Vec<&'v Value> {
    match step {
        None | Some(Value::Null) => Vec::new(),
        Some(step) if kind(step) == "Sequence" => {
            step[list].as_array().into_iter().flatten().flat_map(|inner| flat(Some(inner), list)).collect()
        }
        Some(step) => vec![step],
    }
}

fn stage(step: &Value) -> Result<Stage, Refusal> {
    let pattern = match (kind(step), step["pattern"]["Regex"].as_str(), step["pattern"]["String"].as_str()) {
        ("Split", Some(pattern), _) => pattern.to_owned(),
        ("Split", None, Some(text)) => regex_syntax::escape(text),
        (kind, ..) => return Err(format!("the pre-tokenizer {kind} is not modelled")),
    };
    let behavior = match step["behavior"].as_str() {
        Some("Isolated") => Behavior::Isolated,
        Some("Removed") => Behavior::Removed,
        other => return Err(format!("a split with the behaviour {other:?} is not modelled")),
    };
    Ok(Stage { pattern, behavior, invert: step["invert"] == Value::Bool(true) })
}

impl<'de: 'a, 'a> Deserialize<'de> for File<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Parts<'a> {
            type Value = File<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map with a model")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut rest, mut model) = (Map::new(), None);
                while let Some(name) = map.next_key::<String>()? {
                    let is_new = if name == "model" {
                        model.replace(map.next_value()?).is_none()
                    } else {
                        rest.insert(name, map.next_value()?).is_none()
                    };
                    if !is_new {
                        return Err(A::Error::custom("a part that is there twice"));
                    }
                }
                model.map(|model| File { rest, model }).ok_or_else(|| A::Error::custom("there is none"))
            }
        }
        deserializer.deserialize_map(Parts(std::marker::PhantomData))
    }
}

/// The vocabulary, in the order of the file.
pub(super) struct Vocab<'a>(pub(super) Vec<(Text<'a>, TokenId)>);

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Entries<'a> {
            type Value = Vocab<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from tokens to ids")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Vocab(entries))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}

/// A text, borrowed from the file where it has no escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for One<'a> {
            type Value = Text<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(One(std::marker::PhantomData))
    }
}

/// A merge: two texts, or one with a space between them.
pub(super) struct Merge<'a> {
    pub(super) left: Text<'a>,
    pub(super) right: Text<'a>,
    is_pair: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Merge<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair<'a>(std::marker::PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for Pair<'a> {
            type Value = Merge<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge")
            }

            fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                Ok(Merge { left: Text(Cow::Borrowed(left)), right: Text(Cow::Borrowed(right)), is_pair: false })
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                let own = |text: &str| Text(Cow::Owned(text.to_owned()));
                Ok(Merge { left: own(left), right: own(right), is_pair: false })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let short = || A::Error::custom("a merge of fewer than two texts");
                let left = list.next_element()?.ok_or_else(short)?;
                let right = list.next_element()?.ok_or_else(short)?;
                Ok(Merge { left, right, is_pair: true })
            }
        }
        deserializer.deserialize_any(Pair(std::marker::PhantomData))
    }
}

fn halves<E: serde::de::Error>(text: &str) -> Result<(&str, &str), E> {
    // The reference skips such a line.
    let is_comment = text.starts_with("#version");
    let two = text.split_once(' ').filter(|(_, right)| !is_comment && !right.contains(' '));
    two.ok_or_else(|| E::custom("a merge of other than two"))
}
