//! The truth of expressions, without the values that nobody keeps: conditions are most of what templates compute.

use super::super::access;
use super::super::ast::{CompareOp, Comparison, Const, Expr, TestCall};
use super::super::compare::equal;
use super::super::render::Renderer;
use super::super::tests::Test;
use super::super::value::{Undefined, Value};
use super::{field_of, holds_of_integers, unknown};
use crate::Result;

impl<'a> Renderer<'a> {
    /// Whether the value of an expression is true.
    pub(in super::super) fn truth(&mut self, expr: &'a Expr) -> Result<bool> {
        match expr {
            Expr::Not(inner) => self.truth(inner).map(|holds| !holds),
            Expr::And(operands) => self.any_is(operands, false).map(|found| !found),
            Expr::Or(operands) => self.any_is(operands, true),
            Expr::Compare(node) => self.compare(node),
            Expr::Test(node) => self.test(node),
            Expr::Name(variable) => Ok(self.frame.with(variable.slot, Value::is_true)),
            expr => match self.entry_truth(expr) {
                Some(holds) => Ok(holds),
                None => self.look(expr).map(|value| value.is_true()),
            },
        }
    }

    /// The truth of an entry of a variable, where a look at the variable tells.
    fn entry_truth(&self, expr: &'a Expr) -> Option<bool> {
        let (variable, key) = expr.as_field()?;
        self.frame.with(variable.slot, |object| match object {
            Value::Dict(map) => map.look(key).or_else(|| access::no_key(key)).map(|value| value.is_true()),
            Value::Namespace(fields) => field_of(fields, key).map(|value| value.is_true()),
            _ => None,
        })
    }

    /// Whether the truth of an operand decides; those behind it are not computed.
    fn any_is(&mut self, operands: &'a [Expr], deciding: bool) -> Result<bool> {
        for operand in operands {
            if self.truth(operand)? == deciding {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The value of an expression that is only looked at: an entry of a dict comes without its author.
    fn look(&mut self, expr: &'a Expr) -> Result<Value<'a>> {
        match expr {
            Expr::Attribute(node) if node.only_key => {
                let key = &*node.name;
                let entry = |object: &Value<'a>| match object {
                    Value::Dict(map) => Some(map.look(key).unwrap_or(Value::Undefined(Undefined::key(key)))),
                    Value::Namespace(fields) => field_of(fields, key),
                    Value::Loop(state) => state.ready(node.on_loop?),
                    _ => None,
                };
                if let Expr::Name(variable) = &node.object
                    && let Some(value) = self.frame.with(variable.slot, entry)
                {
                    return Ok(value);
                }
                let object = self.look(&node.object)?;
                entry(&object).map_or_else(|| self.attribute_of(&object, key), Ok)
            }
            Expr::Item(pair) => match &**pair {
                (object, Expr::Const(Const::Text(key))) => self.look_item(object, key),
                _ => self.evaluate(expr),
            },
            expr => self.evaluate(expr),
        }
    }

    /// The same of `object['key']`.
    fn look_item(&mut self, object: &'a Expr, key: &'a str) -> Result<Value<'a>> {
        let entry = |object: &Value<'a>| match object {
            Value::Dict(map) => map.look(key).or_else(|| access::no_key(key)),
            _ => None,
        };
        if let Expr::Name(variable) = object
            && let Some(value) = self.frame.with(variable.slot, entry)
        {
            return Ok(value);
        }
        let object = self.look(object)?;
        entry(&object).map_or_else(|| self.item(&object, &Value::literal(key)), Ok)
    }

    /// Whether a chain of comparisons holds; it stops at the first that does not.
    pub(super) fn compare(&mut self, node: &'a Comparison) -> Result<bool> {
        if let [(operator, operand)] = &*node.rest {
            return self.compare_two(*operator, &node.first, operand);
        }
        let mut left = self.evaluate(&node.first)?;
        for (operator, operand) in &node.rest {
            let right = self.evaluate(operand)?;
            if !self.holds(*operator, &left, &right)? {
                return Ok(false);
            }
            left = right;
        }
        Ok(true)
    }

    fn compare_two(&mut self, operator: CompareOp, first: &'a Expr, second: &'a Expr) -> Result<bool> {
        match (operator, second) {
            (CompareOp::Eq, Expr::Const(Const::Text(text))) => self.is_text(first, text),
            (CompareOp::Ne, Expr::Const(Const::Text(text))) => self.is_text(first, text).map(|same| !same),
            (CompareOp::In, Expr::List(items) | Expr::Tuple(items)) if constant(items) => self.is_one_of(first, items),
            (CompareOp::NotIn, Expr::List(items) | Expr::Tuple(items)) if constant(items) => {
                self.is_one_of(first, items).map(|found| !found)
            }
            _ => {
                if let Some(left) = self.integer(first)
                    && let Some(right) = self.integer(second)
                    && let Some(holds) = holds_of_integers(operator, left, right)
                {
                    return Ok(holds);
                }
                let left = self.look(first)?;
                let right = self.look(second)?;
                self.holds(operator, &left, &right)
            }
        }
    }

    /// Whether an expression is this text; nothing but a text is equal to one.
    fn is_text(&mut self, expr: &'a Expr, text: &str) -> Result<bool> {
        if let Expr::Name(variable) = expr {
            return Ok(self.frame.with(variable.slot, |value| value.as_str() == Some(text)));
        }
        if let Some((variable, key)) = expr.as_field() {
            let entry = |object: &Value<'a>| match object {
                Value::Dict(map) => map.is_text(key, text),
                _ => None,
            };
            if let Some(same) = self.frame.with(variable.slot, entry) {
                return Ok(same);
            }
        }
        Ok(self.look(expr)?.as_str() == Some(text))
    }

    fn is_one_of(&mut self, expr: &'a Expr, constants: &'a [Expr]) -> Result<bool> {
        let value = self.look(expr)?;
        for constant in constants {
            let constant = self.evaluate(constant)?;
            if constant.is_same(&value) || equal(&constant, &value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn test(&mut self, node: &'a TestCall) -> Result<bool> {
        if let (Some(Test::Plain(holds)), true) = (node.test, node.arguments.is_empty()) {
            return match &node.input {
                Expr::Name(variable) => Ok(self.frame.with(variable.slot, |value| match value {
                    Value::Missing => holds(&Value::Undefined(Undefined::Name(""))),
                    value => holds(value),
                })),
                input => Ok(holds(&self.look(input)?)),
            };
        }
        let input = self.evaluate(&node.input)?;
        let args = self.evaluate_arguments(&node.arguments)?;
        match node.test {
            Some(test) => test.passes(self, &input, args),
            None => Err(unknown("test", &node.name).at_line(node.line)),
        }
    }
}

fn constant(items: &[Expr]) -> bool {
    items.iter().all(|item| matches!(item, Expr::Const(_)))
}
