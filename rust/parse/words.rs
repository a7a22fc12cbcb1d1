//! A grammar in words, and all of its texts.

use super::grammar::{Body, Calls, Grammar, KEY};

impl Grammar {
    /// All texts that are matched against ids.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts: Vec<&str> = vec![&self.header, &self.prefill];
        texts.extend(self.reasoning.iter().flat_map(|frame| [&*frame.open, &*frame.close]));
        texts.extend(self.marks.iter().chain(&self.stops).map(String::as_str));
        if let Some(parts) = &self.parts {
            texts.extend([&*parts.header, &parts.body, &parts.reasoning, &parts.content]);
            texts.extend(parts.ends.iter().map(String::as_str));
        }
        for calls in &self.calls {
            texts.extend([&*calls.open, &calls.lead, &calls.trail, &calls.close]);
            match &calls.body {
                Body::Json { .. } => {}
                Body::Named { separators, .. } => texts.extend(separators.iter().map(String::as_str)),
                Body::Tagged(tags) => {
                    texts.extend([&*tags.name_close, &tags.key_open, &tags.key_close, &tags.value_open]);
                    texts.extend(tags.value_close.split(KEY));
                }
                Body::Literal(literals) => {
                    texts.extend(literals.quotes.iter().flat_map(|quotes| [&*quotes.open, &*quotes.close]));
                }
            }
        }
        texts
    }

    /// The grammar in sentences.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(frame) = &self.reasoning {
            words.push(format!("Reasoning stands between {:?} and {:?}.", frame.open, frame.close));
        }
        if let Some(parts) = &self.parts {
            words.push(format!(
                "A turn is made of parts: {:?}, a header, {:?}, and a body. Content has the header {:?}.",
                parts.header, parts.body, parts.content
            ));
            if !parts.reasoning.is_empty() {
                words.push(format!("Reasoning has the header {:?}.", parts.reasoning));
            }
            if let Some(recipient) = &parts.recipient {
                words.push(format!(
                    "A header names the tool of a call behind {recipient:?}; the body is a JSON object."
                ));
            }
        }
        words.extend(self.calls.iter().map(Calls::to_words));
        if !self.stops.is_empty() {
            let stops: Vec<String> = self.stops.iter().map(|stop| format!("{stop:?}")).collect();
            words.push(format!("A turn ends with {}.", stops.join(" or ")));
        }
        words.extend(self.notes.iter().cloned());
        words
    }
}

impl Calls {
    fn to_words(&self) -> String {
        let body = match &self.body {
            Body::Json { name, arguments, .. } if name.is_empty() => {
                let _ = arguments;
                "JSON objects whose one key is the name and whose value holds the arguments".to_owned()
            }
            Body::Json { name, arguments, .. } => {
                format!(
                    "JSON objects with the name under {:?} and the arguments under {:?}",
                    name.join("."),
                    arguments.join(".")
                )
            }
            Body::Named { separators, .. } => {
                let separators: Vec<String> = separators.iter().map(|text| format!("{text:?}")).collect();
                format!("a name, {} and a JSON object of arguments", separators.join(", "))
            }
            Body::Tagged(tags) => format!(
                "a name, then each argument as {:?} key {:?} value {:?}",
                tags.key_open,
                format!("{}{}", tags.key_close, tags.value_open),
                tags.value_close.replace(KEY, "KEY")
            ),
            Body::Literal(literals) => {
                format!("name{}key{}value, …{}", literals.open, literals.assign, literals.close)
            }
        };
        match (&*self.open, &*self.close) {
            ("", _) => format!("Calls are the whole turn: {body}."),
            (open, "") => format!("Calls begin with {open:?} and end where the next mark or the turn does: {body}."),
            (open, close) => format!("Calls stand between {open:?} and {close:?}: {body}."),
        }
    }
}
