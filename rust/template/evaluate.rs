//! Evaluates expressions.

mod arithmetic;
mod integers;
mod truth;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use super::access;
use super::arguments::Args;
use super::ast::{Arguments, Attribute, BinaryOp, CompareOp, Condition, Const, Expr, FilterCall};
use super::compare::{equal, order};
use super::dump::{repr, soft, write_text};
use super::escape::escaped;
use super::failure::{raise, type_error};
use super::number::{self, Number};
use super::render::Renderer;
use super::text::{Text, Writer};
use super::value::{Map, Namespace, Undefined, Value};
use crate::Result;
use crate::find::find;

impl<'a> Renderer<'a> {
    /// The value of an expression. Each kind returns its result as it is: taking it apart to pass it on costs more than
    /// computing most of them.
    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match expr {
            Expr::Const(constant) => Ok(Value::from_const(constant)),
            Expr::Name(variable) => Ok(self.load(variable)),
            Expr::Attribute(node) => self.attribute(node),
            Expr::Compare(node) => self.compare(node).map(Value::Bool),
            Expr::Not(inner) => self.truth(inner).map(|holds| Value::Bool(!holds)),
            Expr::And(operands) => self.first_with(operands, false),
            Expr::Or(operands) => self.first_with(operands, true),
            Expr::Test(node) => self.test(node).map(Value::Bool),
            Expr::Call(node) => self.call(node),
            Expr::Filter(node) => self.evaluate_filter(node),
            Expr::Item(pair) => self.evaluate_item(pair),
            Expr::Binary(operator, pair) => self.evaluate_binary(*operator, pair, expr),
            Expr::Sum(operands) => self.sum(operands, expr),
            Expr::Condition(node) => self.condition(node),
            Expr::Concat(items) => self.concatenate(items),
            Expr::Tuple(items) => self.evaluate_all(items).map(Value::tuple),
            Expr::List(items) => self.evaluate_all(items).map(Value::list),
            Expr::Dict(entries) => self.evaluate_dict(entries),
            Expr::Neg(inner) => self.sign(inner, "unary -"),
            Expr::Pos(inner) => self.sign(inner, "unary +"),
            Expr::Slice(bounds) => self.evaluate_slice(bounds),
        }
    }

    /// The first value whose truth decides, or the last one.
    fn first_with(&mut self, operands: &'a [Expr], deciding: bool) -> Result<Value<'a>> {
        let mut value = Value::None;
        for operand in operands {
            value = self.evaluate(operand)?;
            if value.is_true() == deciding {
                break;
            }
        }
        Ok(value)
    }

    fn sign(&mut self, inner: &'a Expr, operator: &str) -> Result<Value<'a>> {
        let number = number_of(&self.evaluate(inner)?, operator)?;
        Ok(if operator == "unary -" { number::negative(number) } else { number::value(number) })
    }

    fn evaluate_binary(&mut self, operator: BinaryOp, pair: &'a (Expr, Expr), expr: &'a Expr) -> Result<Value<'a>> {
        if let Some(number) = self.integer(expr) {
            return Ok(Value::Int(number));
        }
        let left = self.evaluate(&pair.0)?;
        let right = self.evaluate(&pair.1)?;
        self.binary(operator, &left, &right)
    }

    fn evaluate_item(&mut self, pair: &'a (Expr, Expr)) -> Result<Value<'a>> {
        if let (Expr::Name(variable), Expr::Const(key)) = pair
            && let Some(value) = self.frame.with(variable.slot, |object| constant_item(object, key))
        {
            return Ok(value);
        }
        let object = self.evaluate(&pair.0)?;
        match &pair.1 {
            Expr::Const(Const::Text(name)) => match entry_of(&object, name) {
                Some(value) => Ok(value),
                None => self.item(&object, &Value::literal(name)),
            },
            // A slice is Python's own, without the rules of the sandbox.
            Expr::Slice(bounds) => {
                let bounds = self.bounds(bounds)?;
                access::slice(&object, &bounds)
            }
            key => {
                let key = self.evaluate(key)?;
                self.item(&object, &key)
            }
        }
    }

    fn bounds(&mut self, bounds: &'a [Option<Expr>; 3]) -> Result<[Value<'a>; 3]> {
        let [from, to, step] = bounds;
        Ok([self.bound(from.as_ref())?, self.bound(to.as_ref())?, self.bound(step.as_ref())?])
    }

    fn evaluate_slice(&mut self, bounds: &'a [Option<Expr>; 3]) -> Result<Value<'a>> {
        self.bounds(bounds).map(|bounds| Value::Slice(Rc::new(bounds)))
    }

    fn evaluate_filter(&mut self, node: &'a FilterCall) -> Result<Value<'a>> {
        let Some(input) = &node.input else { return Err(type_error("a filter without a value")) };
        if let Some(length) = self.length(node) {
            return Ok(Value::Int(length));
        }
        let input = self.evaluate(input)?;
        self.filter(node, input)
    }

    fn evaluate_all(&mut self, items: &'a [Expr]) -> Result<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(self.evaluate(item)?);
        }
        Ok(values)
    }

    fn evaluate_dict(&mut self, entries: &'a [(Expr, Expr)]) -> Result<Value<'a>> {
        let mut built = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            built.push((self.evaluate(key)?, self.evaluate(value)?));
        }
        Map::build(built).map(Value::Dict)
    }

    fn bound(&mut self, bound: Option<&'a Expr>) -> Result<Value<'a>> {
        bound.map_or(Ok(Value::None), |bound| self.evaluate(bound))
    }

    fn attribute(&mut self, node: &'a Attribute) -> Result<Value<'a>> {
        if let Expr::Name(variable) = &node.object
            && let Some(value) = self.frame.with(variable.slot, |object| ready_attribute(object, node))
        {
            return Ok(value);
        }
        let object = self.evaluate(&node.object)?;
        let key = if node.only_key { key_of(&object, &node.name) } else { None };
        key.map_or_else(|| self.attribute_of(&object, &node.name), Ok)
    }

    pub(super) fn attribute_of(&mut self, object: &Value<'a>, name: &'a str) -> Result<Value<'a>> {
        match object {
            Value::Loop(state) => {
                if let Some(value) = self.loop_property(state, name)? {
                    return Ok(value);
                }
            }
            Value::Template => {
                if let Some(block) = self.find_block(name) {
                    return Ok(Value::Block(block));
                }
            }
            _ => {}
        }
        access::attribute(object, name)
    }

    pub(super) fn item(&mut self, object: &Value<'a>, key: &Value<'a>) -> Result<Value<'a>> {
        if let (Value::Loop(state), Value::Text(name)) = (object, key)
            && let Some(value) = self.loop_property(state, name.as_str())?
        {
            return Ok(value);
        }
        access::item(object, key)
    }

    fn condition(&mut self, node: &'a Condition) -> Result<Value<'a>> {
        if self.truth(&node.test)? {
            return self.evaluate(&node.then);
        }
        if let Some(otherwise) = &node.otherwise {
            self.evaluate(otherwise)
        } else {
            let line = node.line;
            let hint = format!("the inline if-expression on line {line} evaluated to false and has no else");
            Ok(Value::Undefined(Undefined::Hint(hint.into())))
        }
    }

    fn concatenate(&mut self, items: &'a [Expr]) -> Result<Value<'a>> {
        let values = self.evaluate_all(items)?;
        let escape = self.autoescape();
        let mut writer = Writer::default();
        for value in &values {
            if escape {
                writer.push_text(&escaped(&soft(value)?));
            } else {
                write_text(value, &mut writer)?;
            }
        }
        self.check_size(writer.len())?;
        Ok(Value::Text(writer.finish().with_safety(escape)))
    }

    /// Whether a comparison holds.
    pub(super) fn holds(&mut self, operator: CompareOp, left: &Value<'a>, right: &Value<'a>) -> Result<bool> {
        let ordered = |spelled, wanted: &[Ordering]| {
            Ok(order(left, right, spelled)?.is_some_and(|found| wanted.contains(&found)))
        };
        if let (Value::Int(left), Value::Int(right)) = (left, right)
            && let Some(holds) = holds_of_integers(operator, *left, *right)
        {
            return Ok(holds);
        }
        match operator {
            CompareOp::Eq => equal(left, right),
            CompareOp::Ne => equal(left, right).map(|equal| !equal),
            CompareOp::Lt => ordered("<", &[Ordering::Less]),
            CompareOp::Le => ordered("<=", &[Ordering::Less, Ordering::Equal]),
            CompareOp::Gt => ordered(">", &[Ordering::Greater]),
            CompareOp::Ge => ordered(">=", &[Ordering::Greater, Ordering::Equal]),
            CompareOp::In => self.contains(right, left),
            CompareOp::NotIn => self.contains(right, left).map(|contains| !contains),
        }
    }

    /// `item in container`.
    pub(super) fn contains(&mut self, container: &Value<'a>, item: &Value<'a>) -> Result<bool> {
        match container {
            Value::Text(text) => match item {
                Value::Text(part) => Ok(find(text.as_str(), part.as_str()).is_some()),
                item => {
                    Err(type_error(format!("'in <string>' requires string as left operand, not {}", item.type_name())))
                }
            },
            Value::Dict(map) | Value::View(super::value::View::Keys, map) => map.get(item).map(|found| found.is_some()),
            Value::Range(range) => match Number::of(item) {
                Some(number) => Ok(range_contains(*range, &number)),
                None => Ok(false),
            },
            container => {
                let iterable = self.iterate(container);
                let mut source = iterable
                    .map_err(|_| type_error(format!("argument of type '{}' is not iterable", container.type_name())))?;
                while let Some(found) = self.next(&mut source)? {
                    self.count_iteration()?;
                    if found.is_same(item) || equal(&found, item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Arguments in the order in which they stand: positional, named, `*`, `**`.
    pub(super) fn evaluate_arguments(&mut self, arguments: &'a Arguments) -> Result<Args<'a>> {
        let positional = self.evaluate_all(&arguments.positional)?;
        let mut args = Args { positional, named: Vec::with_capacity(arguments.named.len()) };
        for (name, value) in &arguments.named {
            let value = self.evaluate(value)?;
            args.named.push((Text::borrowed(name, None), value));
        }
        if let Some(star) = &arguments.star {
            let value = self.evaluate(star)?;
            let items = self.collect(&value).map_err(|error| match &value {
                Value::Undefined(_) => error,
                value => type_error(format!("argument after * must be an iterable, not {}", value.type_name())),
            })?;
            args.positional.extend(items);
        }
        if let Some(double_star) = &arguments.double_star {
            let value = self.evaluate(double_star)?;
            spread(&value, &mut args)?;
        }
        Ok(args)
    }

    /// Applies a filter of a chain to a value.
    pub(super) fn filter(&mut self, node: &'a FilterCall, input: Value<'a>) -> Result<Value<'a>> {
        let args = self.evaluate_arguments(&node.arguments)?;
        match node.filter {
            Some(filter) => (filter.call)(self, input, args).map_err(|error| error.at_line(node.line)),
            None => Err(unknown("filter", &node.name).at_line(node.line)),
        }
    }

    /// Applies a chain of filters that begins without a value.
    pub(super) fn evaluate_filter_on(&mut self, chain: &'a Expr, input: Value<'a>) -> Result<Value<'a>> {
        let Expr::Filter(node) = chain else { return self.evaluate(chain) };
        let input = match &node.input {
            Some(inner) => self.evaluate_filter_on(inner, input)?,
            None => input,
        };
        self.filter(node, input)
    }
}

/// What a dict gives for a text in brackets; `None` where that may be a method, or where this is no dict.
fn entry_of<'a>(object: &Value<'a>, name: &'a str) -> Option<Value<'a>> {
    match object {
        Value::Dict(map) => map.get_text(name).or_else(|| access::no_key(name)),
        _ => None,
    }
}

/// What a dict or a list holds under a constant, if it holds something there.
fn constant_item<'a>(object: &Value<'a>, key: &'a Const) -> Option<Value<'a>> {
    match (object, key) {
        (object, Const::Text(name)) => entry_of(object, name),
        (Value::List(items), Const::Int(index)) => items.get(usize::try_from(*index).ok()?),
        _ => None,
    }
}

/// The attribute of a dict, a namespace or a loop that needs nothing but a look at it.
fn ready_attribute<'a>(object: &Value<'a>, node: &'a Attribute) -> Option<Value<'a>> {
    match object {
        Value::Dict(_) if node.only_key => key_of(object, &node.name),
        Value::Namespace(fields) => field_of(fields, &node.name),
        Value::Loop(state) => state.ready(node.on_loop?),
        _ => None,
    }
}

/// The value of a field of a namespace; `None` where it has none, or where the sandbox may hide it.
pub(super) fn field_of<'a>(fields: &RefCell<Namespace<'a>>, name: &str) -> Option<Value<'a>> {
    if name.starts_with('_') { None } else { fields.borrow().get(name).cloned() }
}

/// The value of a key that a dict is asked for; `None` for what is no dict.
fn key_of<'a>(object: &Value<'a>, name: &'a str) -> Option<Value<'a>> {
    let Value::Dict(map) = object else { return None };
    Some(map.get_text(name).unwrap_or(Value::Undefined(Undefined::key(name))))
}

/// Adds the entries of a dict to the keyword arguments.
fn spread<'a>(value: &Value<'a>, args: &mut Args<'a>) -> Result<()> {
    let Value::Dict(map) = value else {
        if let Value::Undefined(undefined) = value {
            return Err(undefined.error());
        }
        return Err(type_error(format!("argument after ** must be a mapping, not {}", value.type_name())));
    };
    for (key, value) in map.entries() {
        let Value::Text(key) = key else { return Err(type_error("keywords must be strings")) };
        if args.named.iter().any(|(known, _)| known.as_str() == key.as_str()) {
            return Err(type_error(format!("got multiple values for keyword argument '{}'", key.as_str())));
        }
        args.named.push((key, value));
    }
    Ok(())
}

fn holds_of_integers(operator: CompareOp, left: i64, right: i64) -> Option<bool> {
    Some(match operator {
        CompareOp::Eq => left == right,
        CompareOp::Ne => left != right,
        CompareOp::Lt => left < right,
        CompareOp::Le => left <= right,
        CompareOp::Gt => left > right,
        CompareOp::Ge => left >= right,
        CompareOp::In | CompareOp::NotIn => return None,
    })
}

/// An unknown filter or test that is reached.
pub(super) fn unknown(what: &str, name: &str) -> crate::Error {
    raise("TemplateRuntimeError", format!("No {what} named '{name}' found."))
}

fn number_of(value: &Value<'_>, operator: &str) -> Result<Number> {
    if let Value::Undefined(undefined) = value {
        return Err(undefined.error());
    }
    Number::of(value).ok_or_else(|| type_error(format!("bad operand type for {operator}: '{}'", value.type_name())))
}

fn range_contains(range: super::value::Range, number: &Number) -> bool {
    let whole = match number {
        Number::Int(number) => *number,
        Number::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => *number as i64,
        Number::Float(_) | Number::Big(_) => return false,
    };
    let offset = i128::from(whole) - i128::from(range.start);
    let step = i128::from(range.step);
    step != 0 && offset % step == 0 && (0..range.len() as i128).contains(&(offset / step))
}

/// The text of a value for an error message.
pub(super) fn shown(value: &Value<'_>) -> String {
    repr(value).map_or_else(|_| "?".to_owned(), |text| text.as_str().to_owned())
}
