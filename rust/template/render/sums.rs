//! Sums that are written: their texts go into the output one by one, and no text is made of them first.

use super::super::ast::{BinaryOp, Expr};
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
        let Expr::Binary(BinaryOp::Add, pair) = expr else {
            let value = self.evaluate(expr)?;
            return Ok(self.write_if_plain(value));
        };
        let left = self.write_operands(&pair.0, start)?;
        let right = self.evaluate(&pair.1)?;
        let (left, right) = match (left, right) {
            (Some(left), right) => (left, right),
            (None, right) => match self.write_if_plain(right) {
                Some(right) => (Value::Text(self.out.take_back(start)), right),
                None => return Ok(None),
            },
        };
        let sum = self.binary(BinaryOp::Add, &left, &right)?;
        Ok(self.write_if_plain(sum))
    }

    /// Writes a plain text; anything else is given back.
    fn write_if_plain(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        match value {
            Value::Text(text) if !text.is_safe() => {
                self.push_written(&text);
                None
            }
            value => Some(value),
        }
    }
}
