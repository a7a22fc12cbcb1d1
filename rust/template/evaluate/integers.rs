//! Integers that a look at variables tells: lengths, places in loops, fields of namespaces, and sums of these. Templates
//! compute them for every message, and none of them needs to become a value first.

use super::super::ast::{BinaryOp, Const, Expr, FilterCall};
use super::super::filters::length_of;
use super::super::render::Renderer;
use super::super::value::Value;
use super::field_of;

impl<'a> Renderer<'a> {
    /// The integer that an expression is; `None` where it is something else, or takes more than a look.
    pub(super) fn integer(&self, expr: &'a Expr) -> Option<i64> {
        match expr {
            Expr::Const(Const::Int(number)) => Some(*number),
            Expr::Name(variable) => self.frame.with(variable.slot, as_integer),
            Expr::Attribute(node) => {
                let Expr::Name(variable) = &node.object else { return None };
                self.frame.with(variable.slot, |object| match object {
                    Value::Loop(state) => state.place(node.on_loop?),
                    Value::Namespace(fields) => as_integer(&field_of(fields, &node.name)?),
                    _ => None,
                })
            }
            Expr::Filter(node) => self.length(node),
            Expr::Binary(BinaryOp::Sub, pair) => self.integer(&pair.0)?.checked_sub(self.integer(&pair.1)?),
            Expr::Sum(operands) => match operands.as_slice() {
                [left, right] => self.integer(left)?.checked_add(self.integer(right)?),
                _ => None,
            },
            _ => None,
        }
    }

    /// `variable|length`.
    pub(super) fn length(&self, node: &'a FilterCall) -> Option<i64> {
        match &node.input {
            Some(Expr::Name(variable)) if node.is_length => {
                self.frame.with(variable.slot, length_of).map(|length| length as i64)
            }
            _ => None,
        }
    }
}

fn as_integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}
