//! Where a token comes from, in words.

use std::fmt::Write;

use super::Rendered;
use crate::author::Author;

impl Rendered {
    /// Says in words where a token comes from: who wrote it, for which message, and whether a policy would have sampled
    /// it. `token` must be smaller than the number of tokens.
    pub fn explain(&self, token: usize) -> String {
        let start = self.starts.get(token).copied().unwrap_or_default();
        let end = self.starts.get(token + 1).copied().unwrap_or(self.text.text.len() as u32);
        let bytes = self.text.text.as_bytes().get(start as usize..end as usize).unwrap_or_default();
        let written = format!("{:?}", String::from_utf8_lossy(bytes));
        let id = self.token_ids.get(token).copied().unwrap_or(-1);
        let authors = self.authors_of(start, end.max(start + 1));
        let mut words = format!("token {token} is {written} (id {id}): ");
        for (number, author) in authors.iter().enumerate() {
            let then = if number > 0 { ", then " } else { "" };
            let _ = write!(words, "{then}{}", self.describe(*author));
        }
        words + &self.describe_sampling(token, start)
    }

    /// The authors of a range of bytes, neighbours different.
    fn authors_of(&self, start: u32, end: u32) -> Vec<Author> {
        let overlaps = self.text.spans.iter().filter(|span| span.start < end && start < span.end);
        overlaps.map(|span| span.author).collect()
    }

    fn describe(&self, author: Author) -> String {
        let message = |index: u32| match self.roles.get(index as usize).filter(|role| !role.is_empty()) {
            Some(role) => format!("message {index} ({role})"),
            None => format!("message {index}"),
        };
        match author {
            Author::Frame => "written by the template, for no message".into(),
            Author::Scaffold(index) => format!("written by the template, for {}", message(index)),
            Author::Value(index, field) => format!("copied from `{}` of {}", self.fields().name(field), message(index)),
            Author::Tools => "copied from the tools".into(),
            Author::Documents => "copied from the documents".into(),
        }
    }

    fn describe_sampling(&self, token: usize, start: u32) -> String {
        if !self.assistant_mask().get(token).copied().unwrap_or_default() {
            return "; no policy would have sampled it".into();
        }
        let holds = |spans: &[std::ops::Range<u32>]| spans.iter().any(|span| span.contains(&start));
        match self.assistant_spans().iter().find(|assistant| holds(&assistant.spans)) {
            Some(assistant) => format!("; a policy would have sampled it in message {}", assistant.message),
            None => "; inside a generation block of the template".into(),
        }
    }
}
