//! A rendering as bytes and back, for pickling: everything that was made later included, its origin not.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Rendered, Seam};
use crate::author::{Author, Field, Span};
use crate::mask::{AssistantSpans, Flag};
use crate::template::{FieldNames, RenderedText};
use crate::tokenizer::Encoded;
use crate::{Error, Result, TokenId};

fn author(author: Author) -> [i64; 3] {
    match author {
        Author::Frame => [0, 0, 0],
        Author::Scaffold(message) => [1, i64::from(message), 0],
        Author::Value(message, field) => [2, i64::from(message), i64::from(field.0)],
        Author::Tools => [3, 0, 0],
        Author::Documents => [4, 0, 0],
    }
}

fn ranges(ranges: &[Range<u32>]) -> Value {
    ranges.iter().map(|range| json!([range.start, range.end])).collect()
}

impl Rendered {
    /// The rendering as bytes, for [`Self::from_bytes`] of the same version.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let spans = self.text.spans.iter().map(|span| json!([span.start, span.end, author(span.author)]));
        let assistants = self.assistant_spans().iter().map(|assistant| {
            let flags = assistant.flags.iter().map(|flag| flag.name()).collect::<Vec<_>>();
            json!([assistant.message, ranges(&assistant.spans), flags])
        });
        let seams = self
            .seams()?
            .iter()
            .map(|seam| json!([seam.message, seam.bytes.start, seam.bytes.end, seam.parity, seam.rollout]));
        let state = json!({
            "text": self.text.text,
            "spans": spans.collect::<Value>(),
            "generation": ranges(&self.text.generation_spans),
            "arguments": ranges(&self.text.argument_spans),
            "tagged": self.has_generation_tags(),
            "fields": self.text.fields.all().iter().map(|name| &**name).collect::<Vec<_>>(),
            "ids": self.token_ids,
            "starts": self.starts,
            "roles": self.roles.iter().map(|role| &**role).collect::<Vec<_>>(),
            "assistants": assistants.collect::<Value>(),
            "seams": seams.collect::<Value>(),
        });
        Ok(state.to_string().into_bytes())
    }

    /// A rendering from the bytes of [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let state = serde_json::from_slice(bytes).ok().and_then(|state: Value| restore(&state));
        state.ok_or_else(|| Error::schema("these bytes are no stored rendering of this version"))
    }
}

fn restore(state: &Value) -> Option<Rendered> {
    let text = RenderedText {
        text: state["text"].as_str()?.to_owned(),
        spans: list(&state["spans"], span)?,
        generation_spans: list(&state["generation"], range)?,
        argument_spans: list(&state["arguments"], range)?,
        fields: FieldNames::new(list(&state["fields"], name)?),
    };
    let encoded = Encoded { ids: ids(&state["ids"])?, starts: list(&state["starts"], number)? };
    let assistants = list(&state["assistants"], assistant)?;
    let seams = list(&state["seams"], seam)?;
    let tagged = state["tagged"].as_bool()?;
    Some(Rendered::from_parts(text, encoded, list(&state["roles"], name)?, (assistants, seams), tagged))
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(item).collect()
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn name(value: &Value) -> Option<Arc<str>> {
    value.as_str().map(Arc::from)
}

fn ids(value: &Value) -> Option<Vec<TokenId>> {
    list(value, |id| TokenId::try_from(id.as_i64()?).ok())
}

fn range(value: &Value) -> Option<Range<u32>> {
    Some(number(&value[0])?..number(&value[1])?)
}

fn span(value: &Value) -> Option<Span> {
    let message = number(&value[2][1])?;
    let author = match value[2][0].as_u64()? {
        0 => Author::Frame,
        1 => Author::Scaffold(message),
        2 => Author::Value(message, Field(u16::try_from(number(&value[2][2])?).ok()?)),
        3 => Author::Tools,
        4 => Author::Documents,
        _ => return None,
    };
    Some(Span { start: number(&value[0])?, end: number(&value[1])?, author })
}

fn assistant(value: &Value) -> Option<AssistantSpans> {
    let flags = list(&value[2], |flag| Flag::from_name(flag.as_str()?))?;
    Some(AssistantSpans { message: number(&value[0])?, spans: list(&value[1], range)?, flags })
}

fn seam(value: &Value) -> Option<Seam> {
    let bytes = number(&value[1])?..number(&value[2])?;
    Some(Seam { message: number(&value[0])?, bytes, parity: ids(&value[3])?, rollout: ids(&value[4])? })
}
