//! Arithmetic operators, on numbers, texts and lists.

use std::borrow::Cow;

use super::super::arguments::integer;
use super::super::ast::{BinaryOp, Expr};
use super::super::escape::{added_to, escaped};
use super::super::failure::{raise, type_error};
use super::super::format::percent;
use super::super::number::{self, Number};
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::{List, Value};
use crate::Result;

impl<'a> Renderer<'a> {
    /// An arithmetic operation.
    pub(in super::super) fn binary(
        &mut self,
        operator: BinaryOp,
        left: &Value<'a>,
        right: &Value<'a>,
    ) -> Result<Value<'a>> {
        if let (Value::Int(a), Value::Int(b)) = (left, right) {
            let exact = match operator {
                BinaryOp::Add => a.checked_add(*b),
                BinaryOp::Sub => a.checked_sub(*b),
                _ => None,
            };
            if let Some(result) = exact {
                return Ok(Value::Int(result));
            }
        }
        if let (Some(a), Some(b)) = (Number::of(left), Number::of(right)) {
            return number::binary(operator, &a, &b);
        }
        match (operator, left, right) {
            (BinaryOp::Mod, Value::Text(template), values) => percent(template, values).map(Value::Text),
            (_, Value::Undefined(undefined), _) | (_, _, Value::Undefined(undefined)) => Err(undefined.error()),
            (BinaryOp::Add, Value::Text(a), Value::Text(b)) => self.add_texts(a, b),
            (BinaryOp::Add, Value::List(a), Value::List(b)) => self.add_lists(a, b).map(Value::List),
            (BinaryOp::Add, Value::Tuple(a), Value::Tuple(b)) => self.add_lists(a, b).map(Value::Tuple),
            (BinaryOp::Mul, Value::Text(text), count) | (BinaryOp::Mul, count, Value::Text(text)) => {
                self.repeat_text(text, count)
            }
            (BinaryOp::Mul, Value::List(items), count) | (BinaryOp::Mul, count, Value::List(items)) => {
                self.repeat_list(items, count).map(Value::List)
            }
            (BinaryOp::Mul, Value::Tuple(items), count) | (BinaryOp::Mul, count, Value::Tuple(items)) => {
                self.repeat_list(items, count).map(Value::Tuple)
            }
            _ => Err(unsupported(operator, left, right)),
        }
    }

    /// A sum. Texts that are only to be put together stay apart, at the end of `self.pieces`, until all are there or
    /// something else comes.
    pub(super) fn sum(&mut self, operands: &'a [Expr], expr: &'a Expr) -> Result<Value<'a>> {
        if let [left, right] = operands {
            if let Some(number) = self.integer(expr) {
                return Ok(Value::Int(number));
            }
            let left = self.evaluate(left)?;
            let right = self.evaluate(right)?;
            return self.binary(BinaryOp::Add, &left, &right);
        }
        let first = self.pieces.len();
        for operand in operands {
            let mut sum = self.evaluate(operand)?;
            let before = self.pieces.last().and_then(Value::as_plain_text);
            let joins = before.is_some() && sum.as_plain_text().is_some();
            if self.pieces.len() > first && !joins {
                let left = self.joined(first)?;
                sum = self.binary(BinaryOp::Add, &left, &sum)?;
            }
            self.pieces.push(sum);
        }
        self.joined(first)
    }

    /// One value of the pieces from the place `first` on.
    fn joined(&mut self, first: usize) -> Result<Value<'a>> {
        if self.pieces.len() == first + 1
            && let Some(only) = self.pieces.pop()
        {
            return Ok(only);
        }
        let texts = || self.pieces[first..].iter().filter_map(Value::as_text);
        let length = texts().map(Text::len).sum();
        self.check_size(length)?;
        let mut writer = Writer::with_capacity(length);
        texts().for_each(|text| writer.push_text(text));
        self.pieces.truncate(first);
        Ok(Value::Text(writer.finish()))
    }

    pub(super) fn add_texts(&mut self, left: &Text<'a>, right: &Text<'a>) -> Result<Value<'a>> {
        let safe = left.is_safe() || right.is_safe();
        let (left, right) = if safe {
            (Cow::Owned(added_to(&right.clone().with_safety(true), left)), Cow::Owned(escaped(right)))
        } else {
            (Cow::Borrowed(left), Cow::Borrowed(right))
        };
        self.check_size(left.len() + right.len())?;
        let mut writer = Writer::with_capacity(left.len() + right.len());
        writer.push_text(&left);
        writer.push_text(&right);
        Ok(Value::Text(writer.finish().with_safety(safe)))
    }

    pub(super) fn add_lists(&mut self, left: &List<'a>, right: &List<'a>) -> Result<List<'a>> {
        self.check_size((left.len() + right.len()) * size_of::<Value<'_>>())?;
        Ok(List::new(left.iter().chain(right.iter()).collect()))
    }

    pub(super) fn repeat_count(&self, count: &Value<'a>, size: usize) -> Result<usize> {
        let (Value::Int(_) | Value::Bool(_) | Value::Big(_)) = count else {
            return Err(type_error(format!("can't multiply sequence by non-int of type '{}'", count.type_name())));
        };
        if let Value::Big(_) = count {
            return Err(raise("OverflowError", "cannot fit 'int' into an index-sized integer"));
        }
        let count = usize::try_from(integer(count)?).unwrap_or(0);
        self.check_size(count.saturating_mul(size))?;
        Ok(count)
    }

    pub(super) fn repeat_text(&mut self, text: &Text<'a>, count: &Value<'a>) -> Result<Value<'a>> {
        let count = self.repeat_count(count, text.len())?;
        let mut writer = Writer::with_capacity(text.len() * count);
        (0..count).for_each(|_| writer.push_text(text));
        Ok(Value::Text(writer.finish().with_safety(text.is_safe())))
    }

    pub(super) fn repeat_list(&mut self, items: &List<'a>, count: &Value<'a>) -> Result<List<'a>> {
        let count = self.repeat_count(count, items.len() * size_of::<Value<'_>>())?;
        Ok(List::new((0..count).flat_map(|_| items.iter()).collect()))
    }
}

fn unsupported(operator: BinaryOp, left: &Value<'_>, right: &Value<'_>) -> crate::Error {
    let (left_type, right_type) = (left.type_name(), right.type_name());
    if operator == BinaryOp::Add {
        let kind = match left {
            Value::Text(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            _ => "",
        };
        if !kind.is_empty() {
            return type_error(format!("can only concatenate {kind} (not \"{right_type}\") to {kind}"));
        }
    }
    let spelled = match operator {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::FloorDiv => "//",
        BinaryOp::Mod => "%",
        BinaryOp::Pow => "** or pow()",
    };
    type_error(format!("unsupported operand type(s) for {spelled}: '{left_type}' and '{right_type}'"))
}
