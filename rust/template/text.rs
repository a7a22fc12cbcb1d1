//! Texts that know who wrote each of their bytes.
//!
//! *Invariant*: the runs of a text end where the text ends, none is empty, and neighbours differ. A text of one author,
//! by far the most common, carries that author and no runs; a text that a template or a conversation holds is borrowed.

mod writer;

use std::ops::Range;
use std::rc::Rc;

use crate::author::{Author, Field};

pub(super) use writer::Writer;

/// The author of a byte; `None` is the template, before it is known for which message it writes.
pub(super) type Mark = Option<Author>;

/// The number of no field: texts of the template's further arguments carry it, of no message until they are written.
/// They count as the template's own, except that no control token may come from them.
const ARGUMENT: Field = Field(u16::MAX);

/// The author of a text in a further argument of the template.
pub(super) const GIVEN: Author = Author::Value(u32::MAX, ARGUMENT);

/// The mark of a byte that is written while a message is in hand.
pub(super) fn written(mark: Mark, message: u32) -> Mark {
    match mark {
        None => Some(Author::Scaffold(message)),
        Some(GIVEN) => Some(Author::Value(message, ARGUMENT)),
        mark => mark,
    }
}

/// The author of a byte of a finished text, and whether it came from a further argument.
#[inline]
pub(super) fn final_author(mark: Mark) -> (Author, bool) {
    match mark {
        None => (Author::Frame, false),
        Some(GIVEN) => (Author::Frame, true),
        Some(Author::Value(message, ARGUMENT)) => (Author::Scaffold(message), true),
        Some(author) => (author, false),
    }
}

/// A run of bytes with one mark, up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) end: u32,
    pub(super) mark: Mark,
}

/// A text with the author of every byte. A *safe* text escapes what is added to it (`Markup` in Python).
///
/// Three words: values are passed around by the thousand, and nearly all texts are borrowed.
#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    /// A text of one author that the template or the conversation holds; never safe.
    Borrowed(&'a str, Mark),
    /// A text that the rendering has made.
    Owned(Rc<Owned>),
}

/// A text that a rendering has made.
#[derive(Debug, Clone)]
pub(super) struct Owned {
    text: String,
    marks: Marks,
    safe: bool,
}

#[derive(Debug, Clone)]
enum Marks {
    One(Mark),
    Runs(Vec<Run>),
}

impl Marks {
    /// The marks of a text that has these runs.
    fn of(runs: Vec<Run>) -> Self {
        match runs.as_slice() {
            [] => Self::One(None),
            [run] => Self::One(run.mark),
            _ => Self::Runs(runs),
        }
    }
}

impl<'a> Text<'a> {
    /// A text that the template or the conversation holds.
    pub(super) fn borrowed(text: &'a str, mark: Mark) -> Self {
        Self::Borrowed(text, mark)
    }

    /// A new text of one author.
    pub(super) fn new(text: impl Into<String>, mark: Mark) -> Self {
        Self::Owned(Rc::new(Owned { text: text.into(), marks: Marks::One(mark), safe: false }))
    }

    /// A text with the author of each byte.
    pub(super) fn from_runs(text: String, runs: Vec<Run>, safe: bool) -> Self {
        Self::Owned(Rc::new(Owned { text, marks: Marks::of(runs), safe }))
    }

    /// A new text of the template.
    pub(super) fn own(text: impl Into<String>) -> Self {
        Self::new(text, None)
    }

    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text, _) => text,
            Self::Owned(owned) => &owned.text,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_str().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }

    /// Whether this escapes what is added to it.
    pub(super) fn is_safe(&self) -> bool {
        matches!(self, Self::Owned(owned) if owned.safe)
    }

    #[must_use]
    pub(super) fn with_safety(self, safe: bool) -> Self {
        if self.is_safe() == safe {
            return self;
        }
        let owned = match self {
            Self::Borrowed(text, mark) => Owned { text: text.into(), marks: Marks::One(mark), safe },
            Self::Owned(owned) => Owned { safe, ..Rc::unwrap_or_clone(owned) },
        };
        Self::Owned(Rc::new(owned))
    }

    /// The runs, those of a one-author text included.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let (one, many): (Option<Run>, &[Run]) = match self.single_mark() {
            Some(_) if self.is_empty() => (None, &[]),
            Some(mark) => (Some(Run { end: self.len() as u32, mark }), &[]),
            None => (None, self.many()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// The runs of a text of several authors.
    fn many(&self) -> &[Run] {
        match self {
            Self::Owned(owned) => match &owned.marks {
                Marks::Runs(runs) => runs,
                Marks::One(_) => &[],
            },
            Self::Borrowed(..) => &[],
        }
    }

    /// The author of the byte at `at`.
    pub(super) fn mark_at(&self, at: usize) -> Mark {
        self.single_mark().unwrap_or_else(|| {
            let runs = self.many();
            runs.get(runs.partition_point(|run| run.end as usize <= at)).and_then(|run| run.mark)
        })
    }

    /// The one author of the whole text, if it has one.
    pub(super) fn single_mark(&self) -> Option<Mark> {
        match self {
            Self::Borrowed(_, mark) => Some(*mark),
            Self::Owned(owned) => match owned.marks {
                Marks::One(mark) => Some(mark),
                Marks::Runs(_) => None,
            },
        }
    }

    /// The first author in the text other than the template.
    pub(super) fn first_author(&self) -> Mark {
        self.single_mark().unwrap_or_else(|| self.many().iter().find_map(|run| run.mark))
    }

    /// The bytes of a range, with their authors. The range lies on character boundaries.
    #[must_use]
    pub(super) fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Borrowed(text, mark) => Self::Borrowed(&text[range], *mark),
            Self::Owned(owned) if range == (0..owned.text.len()) => self.clone(),
            Self::Owned(owned) => {
                let marks = match &owned.marks {
                    Marks::One(mark) => Marks::One(*mark),
                    Marks::Runs(runs) => cut(runs, &range),
                };
                Self::Owned(Rc::new(Owned { text: owned.text[range].into(), marks, safe: owned.safe }))
            }
        }
    }

    /// The same bytes, all by another author.
    #[must_use]
    pub(super) fn marked(self, mark: Mark) -> Self {
        match self {
            Self::Borrowed(text, _) => Self::Borrowed(text, mark),
            Self::Owned(owned) => Self::Owned(Rc::new(Owned { marks: Marks::One(mark), ..Rc::unwrap_or_clone(owned) })),
        }
    }
}

/// The runs of a range of a text, counted from its start.
fn cut(runs: &[Run], range: &Range<usize>) -> Marks {
    let first = runs.partition_point(|run| run.end as usize <= range.start);
    let inside = runs[first..].iter().scan(false, |finished, run| {
        let end = (run.end as usize).min(range.end);
        let more = !*finished;
        *finished = run.end as usize >= range.end;
        more.then_some(Run { end: (end - range.start) as u32, mark: run.mark })
    });
    let cut: Vec<Run> = inside.collect();
    match cut.as_slice() {
        [] => Marks::One(None),
        [run] => Marks::One(run.mark),
        _ if range.is_empty() => Marks::One(None),
        _ => Marks::Runs(cut),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Text<'static> {
        let mut writer = Writer::default();
        writer.push("ab", None);
        writer.push("", Some(Author::Tools));
        writer.push("cde", Some(Author::Tools));
        writer.push("f", Some(Author::Documents));
        writer.finish()
    }

    #[test]
    fn runs_merge_and_are_never_empty() {
        let ends: Vec<u32> = mixed().runs().map(|run| run.end).collect();
        assert_eq!(ends, [2, 5, 6]);
    }

    #[test]
    fn a_slice_keeps_the_author_of_each_byte() {
        let text = mixed();
        for start in 0..=6 {
            for end in start..=6 {
                let slice = text.slice(start..end);
                assert_eq!(slice.as_str(), &"abcdef"[start..end]);
                assert_eq!(slice.runs().last().map_or(0, |run| run.end as usize), end - start);
                for at in 0..end - start {
                    assert_eq!(slice.mark_at(at), text.mark_at(start + at), "{start}..{end} at {at}");
                }
            }
        }
    }
}
