//! What is written as it stands: constants, fields of messages, and sums of such, whose texts go into the output one by
//! one.

use super::super::ast::{BinaryOp, Const, Expr};
use super::super::text::Mark;
use super::super::value::Value;
use super::Renderer;
use crate::Result;

impl<'a> Renderer<'a> {
    /// Writes a sum, as one statement.
    pub(super) fn write_sum(&mut self, expr: &'a Expr) -> Result<()> {
        self.in_place(|renderer| {
            let start = renderer.out.len();
            match renderer.write_operands(expr, start)? {
                None => renderer.check_size(renderer.out.len()),
                Some(sum) => renderer.write_value(&sum),
            }
        })
    }

    /// Writes the operands of a sum as long as they are plain texts, which need only be put together. What comes to
    /// something else is returned, and nothing of it stays written from `start` on.
    fn write_operands(&mut self, expr: &'a Expr, start: usize) -> Result<Option<Value<'a>>> {
        let Expr::Binary(BinaryOp::Add, pair) = expr else { return self.write_if_plain(expr) };
        let (left, right) = match self.write_operands(&pair.0, start)? {
            Some(left) => (left, self.evaluate(&pair.1)?),
            None => match self.write_if_plain(&pair.1)? {
                Some(right) => (Value::Text(self.out.take_back(start)), right),
                None => return Ok(None),
            },
        };
        let sum = self.binary(BinaryOp::Add, &left, &right)?;
        Ok(self.write_plain(sum))
    }

    /// Writes an expression that is a plain text; the value of any other is returned. Constants and fields of messages,
    /// which are nearly all that templates write, never become values.
    pub(super) fn write_if_plain(&mut self, expr: &'a Expr) -> Result<Option<Value<'a>>> {
        let text = match expr {
            Expr::Const(Const::Text(text)) => Some((&**text, None)),
            expr => expr
                .as_field()
                .and_then(|(variable, key)| self.frame.with(variable.slot, |object| text_in(object, key))),
        };
        if let Some((text, mark)) = text {
            let mark = self.written_mark(mark);
            self.out.push(text, mark);
            return Ok(None);
        }
        let value = self.evaluate(expr)?;
        Ok(self.write_plain(value))
    }

    /// Writes a plain text; anything else is given back.
    fn write_plain(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        match value {
            Value::Text(text) if !text.is_safe() => {
                self.push_written(&text);
                None
            }
            value => Some(value),
        }
    }
}

/// The text of an entry of a dict, and its author.
fn text_in<'a>(object: &Value<'a>, key: &str) -> Option<(&'a str, Mark)> {
    match object {
        Value::Dict(map) => map.get_str(key),
        _ => None,
    }
}
