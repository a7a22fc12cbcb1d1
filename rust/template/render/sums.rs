//! What is written as it stands: constants, fields of messages, and sums of such, whose texts go into the output one by
//! one.

use super::super::ast::{BinaryOp, Const, Expr, Variable};
use super::super::text::Mark;
use super::super::value::Value;
use super::Renderer;
use crate::Result;

impl<'a> Renderer<'a> {
    /// Writes a sum, as one statement.
    pub(super) fn write_sum(&mut self, operands: &'a [Expr]) -> Result<()> {
        self.in_place(|renderer| {
            let start = renderer.out.len();
            for (index, operand) in operands.iter().enumerate() {
                if let Some(value) = renderer.write_if_plain(operand)? {
                    let left = (index > 0).then(|| Value::Text(renderer.out.take_back(start)));
                    let sum = renderer.added_up(left, value, &operands[index + 1..])?;
                    return renderer.write_value(&sum);
                }
            }
            renderer.check_size(renderer.out.len())
        })
    }

    /// The sum of what stands left of a value, of the value and of the operands right of it.
    fn added_up(&mut self, left: Option<Value<'a>>, value: Value<'a>, rest: &'a [Expr]) -> Result<Value<'a>> {
        let mut sum = match left {
            Some(left) => self.binary(BinaryOp::Add, &left, &value)?,
            None => value,
        };
        for operand in rest {
            let right = self.evaluate(operand)?;
            sum = self.binary(BinaryOp::Add, &sum, &right)?;
        }
        Ok(sum)
    }

    /// Writes an expression that is a plain text; the value of any other is returned. Constants and fields of messages,
    /// which are nearly all that templates write, never become values.
    pub(super) fn write_if_plain(&mut self, expr: &'a Expr) -> Result<Option<Value<'a>>> {
        match expr {
            Expr::Const(Const::Text(text)) => {
                self.out.push(text, self.written_mark(None));
                return Ok(None);
            }
            Expr::Name(variable) => {
                if self.write_variable(variable) {
                    return Ok(None);
                }
            }
            expr => {
                if let Some((variable, key)) = expr.as_field()
                    && let Some((text, mark)) = self.frame.with(variable.slot, |object| text_in(object, key))
                {
                    self.out.push(text, self.written_mark(mark));
                    return Ok(None);
                }
            }
        }
        let value = self.evaluate(expr)?;
        Ok(self.write_plain(value))
    }

    /// Writes a variable that holds a plain text; returns whether it does.
    fn write_variable(&mut self, variable: &Variable) -> bool {
        let (out, message) = (&mut self.out, self.in_hand);
        self.frame.with(variable.slot, |value| value.as_plain_text().map(|text| out.push_in(text, message)).is_some())
    }

    /// Writes a plain text; anything else is given back.
    fn write_plain(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        let Some(text) = value.as_plain_text() else { return Some(value) };
        self.push_written(text);
        None
    }
}

/// The text of an entry of a dict, and its author.
fn text_in<'a>(object: &Value<'a>, key: &str) -> Option<(&'a str, Mark)> {
    match object {
        Value::Dict(map) => map.get_str(key),
        _ => None,
    }
}
