//! `continue_final_message`: the final message is left open, as transformers does it.
//!
//! A tag is appended to the final message, the text is rendered, and cut where the tag last occurs. The template sees
//! the tag; the faults of this way (a trimmed prefill loses the white space of the header too) are transformers' own.

use std::borrow::Cow;
use std::sync::Arc;

use super::ContinueFinalMessage;
use super::characters::is_space;
use super::failure::{raise, type_error, value_error};
use super::options::RenderedText;
use crate::Result;
use crate::message::{Data, Dict, REASONING_FIELDS};

const TAG: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// A rendering that is to be cut.
pub(super) struct Continued {
    final_text: Arc<str>,
}

/// Appends the tag to the final message.
pub(super) fn prepare(
    messages: &mut Cow<'_, [Data]>,
    continued: &ContinueFinalMessage,
    source: &str,
) -> Result<Option<Continued>> {
    let field = match continued {
        ContinueFinalMessage::No => return Ok(None),
        ContinueFinalMessage::Content => "content",
        ContinueFinalMessage::Field(field) => field,
    };
    let Some(last) = messages.to_mut().last_mut() else {
        return Err(value_error("continue_final_message is set, and there are no messages"));
    };
    let mut dict = last.as_dict().cloned().unwrap_or_default();
    let Some(value) = dict.get(field).filter(|value| **value != Data::Null).cloned() else {
        return Err(value_error(format!("continue_final_message is set, and the final message has no '{field}'")));
    };
    let fields = tagged_fields(field, &value, &dict);
    if !fields.iter().any(|field| source.contains(field)) {
        return Err(value_error(format!("continue_final_message: '{field}' does not occur in the chat template")));
    }
    let final_text = match &value {
        Data::List(parts) | Data::Tuple(parts) => {
            let (parts, text) = with_tagged_part(parts)?;
            dict.insert(field, Data::List(parts.into()));
            text
        }
        _ => {
            for field in fields {
                let value = dict.get(field).cloned().unwrap_or_default();
                dict.insert(field, Data::from(tagged(&value)?));
            }
            value.as_text().map(Arc::from).unwrap_or_default()
        }
    };
    *last = Data::from(dict);
    Ok(Some(Continued { final_text }))
}

/// Every alias of a reasoning field with the same value gets the tag.
fn tagged_fields<'f>(field: &'f str, value: &Data, dict: &Dict) -> Vec<&'f str> {
    if !REASONING_FIELDS.contains(&field) {
        return vec![field];
    }
    REASONING_FIELDS.into_iter().filter(|alias| dict.get(alias) == Some(value)).collect()
}

fn tagged(value: &Data) -> Result<String> {
    match value {
        Data::Text(text) => Ok(format!("{text}{TAG}")),
        value => Err(type_error(format!("only a text can be continued, not {}", value.type_name()))),
    }
}

/// The tag goes to the last part that has a text.
fn with_tagged_part(parts: &[Data]) -> Result<(Vec<Data>, Arc<str>)> {
    let mut parts = parts.to_vec();
    for part in parts.iter_mut().rev() {
        match part {
            Data::Dict(dict) if dict.contains_key("text") => {
                let mut dict = (**dict).clone();
                let text = dict.get("text").cloned().unwrap_or_default();
                dict.insert("text", Data::from(tagged(&text)?));
                *part = Data::from(dict);
                return Ok((parts, text.as_text().map(Arc::from).unwrap_or_default()));
            }
            Data::Dict(_) => {}
            Data::Text(text) if !text.contains("text") => {}
            Data::List(items) | Data::Tuple(items) if !items.contains(&Data::from("text")) => {}
            part => return Err(type_error(format!("a part of the final message is a {}", part.type_name()))),
        }
    }
    Err(value_error("continue_final_message is set, and the final message has no text to continue"))
}

impl Continued {
    /// Cuts the text where the tag is.
    pub(super) fn cut(&self, rendered: &mut RenderedText) -> Result<()> {
        let tag = TAG.trim_end();
        let place = rendered.text.rfind(tag).filter(|_| rendered.text.contains(self.final_text.trim_matches(is_space)));
        let Some(place) = place else {
            let message = "continue_final_message is set, and the final message does not appear in the rendered chat: \
                           the chat template drops or changes a part of it";
            return Err(raise("ValueError", message));
        };
        let kept = &rendered.text[..place];
        let end = if rendered.text[place..].starts_with(TAG) { place } else { kept.trim_end_matches(is_space).len() };
        for span in &mut rendered.generation_spans {
            span.start = beyond(&rendered.text, end, span.start as usize);
            span.end = beyond(&rendered.text, end, span.end as usize);
        }
        rendered.text.truncate(end);
        rendered.argument_spans.retain(|span| (span.start as usize) < end);
        if let Some(last) = rendered.argument_spans.last_mut() {
            last.end = last.end.min(end as u32);
        }
        rendered.spans.retain(|span| (span.start as usize) < end);
        if let Some(last) = rendered.spans.last_mut() {
            last.end = last.end.min(end as u32);
        }
        Ok(())
    }
}

/// A place of the uncut text; past the cut it counts characters.
fn beyond(text: &str, end: usize, place: usize) -> u32 {
    if place <= end {
        return place as u32;
    }
    let inside = place.min(text.len());
    (end + text[end..inside].chars().count() + (place - inside)) as u32
}
