//! What loops and filters draw items from, one at a time.
//!
//! Jinja's lazy filters give generators: their work is done when an item is asked for, and each item comes once.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::arguments::Args;
use super::ast::LoopTest;
use super::compare::hash_key;
use super::failure::type_error;
use super::filters::Filter;
use super::frame::Frame;
use super::loops::LoopState;
use super::render::Renderer;
use super::tests::Test;
use super::text::Text;
use super::value::{HashKey, List, Map, Range, Value, View};
use crate::Result;

/// An iterator over a value.
#[derive(Debug)]
pub(super) enum Source<'a> {
    Empty,
    Items(List<'a>, usize),
    Characters(Text<'a>, usize),
    View(View, Map<'a>, usize),
    Range(Range, usize),
    Generator(Rc<RefCell<Generator<'a>>>),
    /// The items that a running loop has not come to, each with the loop, which moves on with them.
    Running(Rc<LoopState<'a>>),
    /// The items of a loop that pass its condition, evaluated in the frame of the loop.
    Tested(Box<Self>, &'a LoopTest, Rc<Frame<'a>>),
}

/// A lazy filter at work.
#[derive(Debug)]
pub(super) struct Generator<'a> {
    source: Source<'a>,
    kind: Kind<'a>,
    finished: bool,
}

/// What a generator does with the items of its source.
#[derive(Debug)]
pub(super) enum Kind<'a> {
    /// Gives them as they are: `reversed`, a dict's items.
    Plain(&'static str),
    Attribute {
        path: Vec<Value<'a>>,
        default: Option<Value<'a>>,
    },
    Filter {
        filter: Filter,
        args: Args<'a>,
    },
    Select {
        path: Vec<Value<'a>>,
        test: Option<(Test, Args<'a>)>,
        keep: bool,
    },
    Unique {
        path: Vec<Value<'a>>,
        case_sensitive: bool,
        seen: HashSet<HashKey>,
    },
    Batch {
        size: i64,
        fill: Option<Value<'a>>,
    },
    /// An error that comes when the first item is asked for.
    Failing(crate::Error),
}

impl<'a> Generator<'a> {
    pub(super) fn value(source: Source<'a>, kind: Kind<'a>) -> Value<'a> {
        Value::Generator(Rc::new(RefCell::new(Self { source, kind, finished: false })))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Plain(name) => name,
            _ => "generator",
        }
    }
}

impl<'a> Renderer<'a> {
    /// Python's `iter(value)`.
    #[expect(clippy::unused_self, reason = "drawing items needs the renderer, and this begins it")]
    pub(super) fn iterate(&mut self, value: &Value<'a>) -> Result<Source<'a>> {
        Ok(match value {
            Value::List(items) | Value::Tuple(items) => Source::Items(items.clone(), 0),
            Value::Text(text) => Source::Characters(text.clone(), 0),
            Value::Bytes(bytes) => {
                Source::Items(List::new(bytes.iter().map(|byte| Value::Int((*byte).into())).collect()), 0)
            }
            Value::Dict(map) => Source::View(View::Keys, map.clone(), 0),
            Value::View(view, map) => Source::View(*view, map.clone(), 0),
            Value::Range(range) => Source::Range(*range, 0),
            Value::Generator(generator) => Source::Generator(generator.clone()),
            Value::Undefined(_) => Source::Empty,
            Value::Group(group) => Source::Items(List::new(vec![group.0.clone(), group.1.clone()]), 0),
            Value::Loop(state) => Source::Running(state.clone()),
            _ => return Err(type_error(format!("'{}' object is not iterable", value.type_name()))),
        })
    }

    /// The next item.
    pub(super) fn next(&mut self, source: &mut Source<'a>) -> Result<Option<Value<'a>>> {
        Ok(match source {
            Source::Empty => None,
            Source::Items(items, at) => {
                *at += 1;
                items.get(*at - 1)
            }
            Source::Characters(text, at) => {
                let Some(char) = text.as_str()[*at..].chars().next() else { return Ok(None) };
                let start = *at;
                *at += char.len_utf8();
                Some(Value::Text(text.slice(start..*at)))
            }
            Source::View(view, map, at) => {
                let Some((key, value)) = map.entry(*at) else { return Ok(None) };
                *at += 1;
                Some(match view {
                    View::Keys => key,
                    View::Values => value,
                    View::Items => Value::tuple(vec![key, value]),
                })
            }
            Source::Range(range, at) => {
                *at += 1;
                (*at <= range.len()).then(|| Value::Int(range.get(*at - 1)))
            }
            Source::Generator(generator) => {
                let generator = generator.clone();
                let mut running = generator
                    .try_borrow_mut()
                    .map_err(|_| super::failure::value_error("generator already executing"))?;
                return self.generate(&mut running);
            }
            Source::Running(state) => return self.next_running(state),
            Source::Tested(inner, test, frame) => return self.next_passing(inner, test, frame),
        })
    }

    /// All items, counted against the limit of iterations.
    pub(super) fn collect(&mut self, value: &Value<'a>) -> Result<Vec<Value<'a>>> {
        let mut source = self.iterate(value)?;
        let mut items = Vec::new();
        while let Some(item) = self.next(&mut source)? {
            self.count_iteration()?;
            items.push(item);
        }
        Ok(items)
    }

    fn generate(&mut self, generator: &mut Generator<'a>) -> Result<Option<Value<'a>>> {
        if generator.finished {
            return Ok(None);
        }
        let result = self.generated(generator);
        if !matches!(result, Ok(Some(_))) {
            generator.finished = true;
        }
        result
    }

    fn generated(&mut self, generator: &mut Generator<'a>) -> Result<Option<Value<'a>>> {
        if let Kind::Failing(error) = &generator.kind {
            return Err(error.clone());
        }
        if let Kind::Batch { size, fill } = &generator.kind {
            return self.batch(&mut generator.source, *size, fill.as_ref());
        }
        while let Some(item) = self.next(&mut generator.source)? {
            self.count_iteration()?;
            match &mut generator.kind {
                Kind::Attribute { path, default } => return self.read_path(item, path, default.as_ref()).map(Some),
                Kind::Filter { filter, args } => return (filter.call)(self, item, args.clone()).map(Some),
                Kind::Select { path, test, keep } => {
                    let tested = self.read_path(item.clone(), path, None)?;
                    let passes = match test {
                        None => tested.is_true(),
                        Some((test, args)) => test.passes(self, &tested, args.clone())?,
                    };
                    if passes == *keep {
                        return Ok(Some(item));
                    }
                }
                Kind::Unique { path, case_sensitive, seen } => {
                    let key = self.read_path(item.clone(), path, None)?;
                    if seen.insert(hash_key(&super::filters::folded(key, *case_sensitive))?) {
                        return Ok(Some(item));
                    }
                }
                Kind::Plain(_) | Kind::Batch { .. } | Kind::Failing(_) => return Ok(Some(item)),
            }
        }
        Ok(None)
    }

    fn batch(&mut self, source: &mut Source<'a>, size: i64, fill: Option<&Value<'a>>) -> Result<Option<Value<'a>>> {
        let mut batch = Vec::new();
        while batch.is_empty() || batch.len() as i64 != size {
            let Some(item) = self.next(source)? else { break };
            self.count_iteration()?;
            batch.push(item);
        }
        if batch.is_empty() {
            return Ok(None);
        }
        if let Some(fill) = fill {
            let missing = usize::try_from(size).unwrap_or(0).saturating_sub(batch.len());
            self.check_size(missing.saturating_mul(size_of::<Value<'_>>()))?;
            batch.extend(std::iter::repeat_n(fill.clone(), missing));
        }
        Ok(Some(Value::list(batch)))
    }

    /// Follows a path of attributes as filters do: items first. A default stands in for what is undefined on the way.
    #[expect(clippy::unused_self, reason = "reading attributes is the renderer's work")]
    pub(super) fn read_path(
        &mut self,
        item: Value<'a>,
        path: &[Value<'a>],
        default: Option<&Value<'a>>,
    ) -> Result<Value<'a>> {
        let mut item = item;
        for part in path {
            item = super::access::item(&item, part)?;
            if let (Value::Undefined(_), Some(default)) = (&item, default) {
                item = default.clone();
            }
        }
        Ok(item)
    }
}
