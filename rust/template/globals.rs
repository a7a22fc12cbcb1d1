//! The functions that every template can call.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Clock;
use super::arguments::{Args, integer, required};
use super::dump::to_text;
use super::evaluate::shown;
use super::failure::{raise, type_error, value_error};
use super::render::Renderer;
use super::text::Text;
use super::value::{Entries, Function, List, Map, Namespace, Range, Value, insert};
use crate::Result;

/// The sandbox refuses longer ranges.
const LONGEST_RANGE: usize = 100_000;

/// The function of a name.
pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "range" => Function::Range,
        "dict" => Function::Dict,
        "namespace" => Function::Namespace,
        "lipsum" => Function::Lipsum,
        "cycler" => Function::Cycler,
        "joiner" => Function::Joiner,
        "raise_exception" => Function::RaiseException,
        "strftime_now" => Function::StrftimeNow,
        _ => return None,
    })
}

/// Calls a function.
pub(super) fn call<'a>(renderer: &mut Renderer<'a>, function: Function, args: Args<'a>) -> Result<Value<'a>> {
    match function {
        Function::Range => range(&args),
        Function::Dict => renderer.dict(args).map(|entries| Value::Dict(Map::Built(Rc::new(entries)))),
        Function::DictFromKeys => renderer.dict_from_keys(args),
        Function::Namespace => renderer.namespace(args),
        Function::Lipsum => Err(type_error("lipsum() writes random text, which no chat template can mean")),
        Function::Cycler => {
            let Args { positional, named } = args;
            if !named.is_empty() {
                return Err(type_error("cycler() takes no keyword arguments"));
            }
            if positional.is_empty() {
                return Err(raise("RuntimeError", "at least one item has to be provided"));
            }
            Ok(Value::Cycler(Rc::new((List::new(positional), Cell::new(0)))))
        }
        Function::Joiner => {
            let [separator] = args.bind("joiner", ["sep"], 0)?;
            let separator = separator.map_or_else(|| Ok(Text::borrowed(", ", None)), |value| to_text(&value))?;
            Ok(Value::Joiner(Rc::new((separator, Cell::new(false)))))
        }
        Function::RaiseException => {
            let [message] = args.bind("raise_exception", ["message"], 1)?;
            let message = to_text(&required(message))?;
            Err(raise("TemplateError", message.as_str()))
        }
        Function::StrftimeNow => {
            let [format] = args.bind("strftime_now", ["format"], 1)?;
            let Value::Text(format) = required(format) else {
                return Err(type_error("strftime() argument 1 must be str"));
            };
            let now = *renderer.clock.get_or_insert_with(Clock::now);
            Ok(Value::own(now.strftime(format.as_str())))
        }
    }
}

fn range<'a>(args: &Args<'a>) -> Result<Value<'a>> {
    if !args.named.is_empty() {
        return Err(type_error("range() takes no keyword arguments"));
    }
    if let Some(Value::Undefined(undefined)) = args.positional.iter().find(|value| value.is_undefined()) {
        return Err(type_error(format!("range() needs integers: {}", undefined.error())));
    }
    let numbers = args.positional.iter().map(integer).collect::<Result<Vec<i64>>>()?;
    let range = match *numbers.as_slice() {
        [stop] => Range { start: 0, stop, step: 1 },
        [start, stop] => Range { start, stop, step: 1 },
        [from, to, step] => Range { start: from, stop: to, step },
        _ => return Err(type_error(format!("range expected 1 to 3 arguments, got {}", numbers.len()))),
    };
    if range.step == 0 {
        return Err(value_error("range() arg 3 must not be zero"));
    }
    if range.len() > LONGEST_RANGE {
        let message = format!("range too big: the sandbox blocks ranges of more than {LONGEST_RANGE} items");
        return Err(raise("OverflowError", message));
    }
    Ok(Value::Range(range))
}

/// The names of a namespace's fields do not begin with an underscore.
pub(super) fn check_field(name: &str) -> Result<()> {
    if name.starts_with('_') {
        let message = format!("a namespace keeps no names that begin with an underscore: '{name}'");
        return Err(raise("SecurityError", message));
    }
    Ok(())
}

impl<'a> Renderer<'a> {
    /// `dict(mapping or pairs, **entries)`.
    fn dict(&mut self, args: Args<'a>) -> Result<Entries<'a>> {
        let Args { positional, named } = args;
        if positional.len() > 1 {
            return Err(type_error(format!("dict expected at most 1 argument, got {}", positional.len())));
        }
        let mut entries = Entries::new();
        match positional.into_iter().next() {
            None => {}
            Some(Value::Dict(map)) => map.entries().try_for_each(|(key, value)| insert(&mut entries, key, value))?,
            Some(pairs) => {
                for (index, pair) in self.collect(&pairs)?.into_iter().enumerate() {
                    let pair = self.collect(&pair).map_err(|_| {
                        type_error(format!("cannot convert dictionary update sequence element #{index} to a sequence"))
                    })?;
                    let [key, value] = <[Value<'a>; 2]>::try_from(pair).map_err(|pair| {
                        value_error(format!(
                            "dictionary update sequence element #{index} has length {}; 2 is required",
                            pair.len()
                        ))
                    })?;
                    insert(&mut entries, key, value)?;
                }
            }
        }
        for (name, value) in named {
            insert(&mut entries, Value::Text(name), value)?;
        }
        Ok(entries)
    }

    /// `dict.fromkeys(keys, value)`.
    pub(super) fn dict_from_keys(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let [keys, value] = args.bind("fromkeys", ["/iterable", "/value"], 1)?;
        let value = value.unwrap_or(Value::None);
        let keys = self.collect(&required(keys))?;
        Map::build(keys.into_iter().map(|key| (key, value.clone()))).map(Value::Dict)
    }

    fn namespace(&mut self, args: Args<'a>) -> Result<Value<'a>> {
        let mut fields = Namespace::default();
        if args.positional.is_empty() {
            args.named.iter().try_for_each(|(name, _)| check_field(name.as_str()))?;
            fields = Namespace::from_unique(args.named);
        } else {
            for (key, value) in self.dict(args)?.into_values() {
                let name = match key {
                    Value::Text(name) => {
                        check_field(name.as_str())?;
                        name
                    }
                    key => Text::own(shown(&key)),
                };
                let _old = fields.set(name, value);
            }
        }
        let namespace = Value::Namespace(Rc::new(RefCell::new(fields)));
        self.namespaces.push(namespace.clone());
        Ok(namespace)
    }
}
