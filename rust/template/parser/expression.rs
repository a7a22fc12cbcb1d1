//! Expressions, from the loosest binding (`if`) to the tightest (calls and subscripts).

use super::super::ast::{BinaryOp, CompareOp, Comparison, Condition, Const, Expr, Target, Variable};
use super::super::lexer::Token;
use super::super::number::integer_from_literal;
use super::{Parsed, Parser};
use crate::message::shared;

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.nested(Self::condition)
    }

    /// One expression, or several with commas between them. `simple` allows nothing but primary expressions.
    pub(super) fn tuple(&mut self, conditional: bool, explicit: bool, ends: &[&str]) -> Parsed<Expr> {
        let parse = if conditional { Self::expression } else { Self::expression_without_condition };
        let (mut items, is_tuple) = self.separated(ends, parse)?;
        match (items.pop(), is_tuple) {
            (Some(only), false) => Ok(only),
            (None, false) if !explicit => self.expected("an expression"),
            (last, _) => {
                items.extend(last);
                Ok(Expr::Tuple(items.into()))
            }
        }
    }

    fn expression_without_condition(&mut self) -> Parsed<Expr> {
        self.nested(Self::or)
    }

    /// Items with commas between them, and whether there was a comma.
    fn separated<T>(&mut self, ends: &[&str], mut parse: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<(Vec<T>, bool)> {
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            let closed = matches!(self.peek(), Token::VariableEnd | Token::BlockEnd) || self.is_operator(")");
            if closed || ends.iter().any(|end| self.is_name(end)) {
                break;
            }
            items.push(parse(self)?);
            if !self.is_operator(",") {
                break;
            }
            is_tuple = true;
        }
        Ok((items, is_tuple))
    }

    /// A name that may be assigned to.
    pub(super) fn assignable_name(&mut self) -> Parsed<Box<str>> {
        let name = self.expect_name()?;
        if is_reserved(&name) {
            return self.fail(format!("cannot assign to '{name}'"));
        }
        Ok(name)
    }

    /// What `set`, `for` and `with` assign to.
    pub(super) fn target(&mut self, fields: bool, ends: &[&str]) -> Parsed<Target> {
        let (mut items, is_tuple) =
            self.separated(ends, |parser| parser.nested(|parser| parser.single_target(fields)))?;
        match items.pop() {
            Some(only) if !is_tuple => Ok(only),
            None if !is_tuple => self.expected("an expression"),
            last => {
                items.extend(last);
                Ok(Target::Tuple(items.into()))
            }
        }
    }

    fn single_target(&mut self, fields: bool) -> Parsed<Target> {
        if self.skip_operator("(") {
            let inner = if self.is_operator(")") { Target::Tuple(Box::default()) } else { self.target(false, &[])? };
            self.expect_operator(")")?;
            return Ok(inner);
        }
        if !matches!(self.peek(), Token::Name(_)) {
            let shown = self.shown();
            return self.fail(format!("cannot assign to {shown}"));
        }
        let name = self.assignable_name()?;
        if fields && self.skip_operator(".") {
            return Ok(Target::Field(Variable::new(name), self.expect_name()?));
        }
        Ok(Target::Name(Variable::new(name)))
    }

    fn condition(&mut self) -> Parsed<Expr> {
        let mut line = self.line();
        let mut then = self.or()?;
        let mut length = 0;
        while self.skip_name("if") {
            self.chain(length)?;
            length += 1;
            let test = self.or()?;
            let otherwise = if self.skip_name("else") { Some(self.expression()?) } else { None };
            then = Expr::Condition(Box::new(Condition { test, then, otherwise, line }));
            line = self.line();
        }
        Ok(then)
    }

    fn or(&mut self) -> Parsed<Expr> {
        self.joined_by("or", Self::and, Expr::Or)
    }

    fn and(&mut self) -> Parsed<Expr> {
        self.joined_by("and", Self::not, Expr::And)
    }

    /// Operands with a word between them.
    fn joined_by(
        &mut self,
        word: &str,
        operand: impl Fn(&mut Self) -> Parsed<Expr>,
        joined: fn(Vec<Expr>) -> Expr,
    ) -> Parsed<Expr> {
        let first = operand(self)?;
        if !self.is_name(word) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.skip_name(word) {
            self.chain(operands.len() - 1)?;
            operands.push(operand(self)?);
        }
        Ok(joined(operands))
    }

    fn not(&mut self) -> Parsed<Expr> {
        if self.skip_name("not") {
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        self.compare()
    }

    fn compare(&mut self) -> Parsed<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.compare_operator() {
            rest.push((operator, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(Comparison { first, rest: rest.into() })) })
    }

    fn compare_operator(&mut self) -> Option<CompareOp> {
        let operator = match self.peek() {
            Token::Operator("==") => CompareOp::Eq,
            Token::Operator("!=") => CompareOp::Ne,
            Token::Operator("<") => CompareOp::Lt,
            Token::Operator("<=") => CompareOp::Le,
            Token::Operator(">") => CompareOp::Gt,
            Token::Operator(">=") => CompareOp::Ge,
            Token::Name(name) if &**name == "in" => CompareOp::In,
            Token::Name(name) if &**name == "not" && matches!(self.look(), Token::Name(name) if &**name == "in") => {
                self.advance();
                CompareOp::NotIn
            }
            _ => return None,
        };
        self.advance();
        Some(operator)
    }

    fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.concat()?;
        for length in 0.. {
            let adds = match self.peek() {
                Token::Operator("+") => true,
                Token::Operator("-") => false,
                _ => break,
            };
            self.chain(length)?;
            self.advance();
            let right = self.concat()?;
            left = if adds { added(left, right) } else { Expr::Binary(BinaryOp::Sub, Box::new((left, right))) };
        }
        Ok(left)
    }

    fn concat(&mut self) -> Parsed<Expr> {
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_operator("~") {
            items.push(self.product()?);
        }
        Ok(Expr::Concat(items.into()))
    }

    fn product(&mut self) -> Parsed<Expr> {
        self.binary(Self::power, |operator| match operator {
            "*" => Some(BinaryOp::Mul),
            "/" => Some(BinaryOp::Div),
            "//" => Some(BinaryOp::FloorDiv),
            "%" => Some(BinaryOp::Mod),
            _ => None,
        })
    }

    fn power(&mut self) -> Parsed<Expr> {
        let unary = |parser: &mut Self| parser.unary(true);
        self.binary(unary, |operator| (operator == "**").then_some(BinaryOp::Pow))
    }

    fn binary(
        &mut self,
        operand: impl Fn(&mut Self) -> Parsed<Expr>,
        kind: impl Fn(&str) -> Option<BinaryOp>,
    ) -> Parsed<Expr> {
        let mut left = operand(self)?;
        let mut length = 0;
        while let Token::Operator(operator) = self.peek() {
            let Some(kind) = kind(operator) else { break };
            self.chain(length)?;
            length += 1;
            self.advance();
            left = Expr::Binary(kind, Box::new((left, operand(self)?)));
        }
        Ok(left)
    }

    fn unary(&mut self, filters: bool) -> Parsed<Expr> {
        let node = if self.skip_operator("-") {
            Expr::Neg(Box::new(self.nested(|parser| parser.unary(false))?))
        } else if self.skip_operator("+") {
            Expr::Pos(Box::new(self.nested(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let node = self.postfix(node)?;
        if filters { self.filters_and_tests(node) } else { Ok(node) }
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let expr = match self.peek() {
            Token::Name(name) => named(name),
            Token::Text(_) => return Ok(self.joined_texts()),
            Token::Integer(digits) => Expr::Const(integer_from_literal(digits)),
            Token::Float(number) => Expr::Const(Const::Float(*number)),
            Token::Operator("(") => {
                self.advance();
                let inner = self.tuple(true, true, &[])?;
                self.expect_operator(")")?;
                return Ok(inner);
            }
            Token::Operator("[") => return self.list(),
            Token::Operator("{") => return self.dict(),
            _ => return self.fail(format!("unexpected {}", self.shown())),
        };
        self.advance();
        Ok(expr)
    }

    fn joined_texts(&mut self) -> Expr {
        let mut joined = String::new();
        while let Token::Text(text) = self.peek() {
            joined.push_str(text);
            self.advance();
        }
        Expr::Const(Const::Text(shared(&joined)))
    }

    fn list(&mut self) -> Parsed<Expr> {
        self.advance();
        let mut items = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("]") {
                break;
            }
            items.push(self.expression()?);
        }
        self.expect_operator("]")?;
        Ok(Expr::List(items.into()))
    }

    fn dict(&mut self) -> Parsed<Expr> {
        self.advance();
        let mut entries = Vec::new();
        while !self.is_operator("}") {
            if !entries.is_empty() {
                self.expect_operator(",")?;
            }
            if self.is_operator("}") {
                break;
            }
            let key = self.expression()?;
            self.expect_operator(":")?;
            entries.push((key, self.expression()?));
        }
        self.expect_operator("}")?;
        Ok(Expr::Dict(entries.into()))
    }
}

/// A sum with one more operand. Texts of the template that are added one after the other are added as one: whatever
/// stands before them, the sum or its error is the same.
fn added(left: Expr, right: Expr) -> Expr {
    let mut operands = match left {
        Expr::Sum(operands) => operands,
        left => vec![left],
    };
    match (operands.last_mut(), right) {
        (Some(Expr::Const(Const::Text(last))), Expr::Const(Const::Text(text))) => {
            *last = shared(&format!("{last}{text}"));
        }
        (_, right) => operands.push(right),
    }
    if operands.len() == 1 { operands.remove(0) } else { Expr::Sum(operands) }
}

fn is_reserved(name: &str) -> bool {
    matches!(name, "true" | "false" | "none" | "True" | "False" | "None")
}

fn named(name: &str) -> Expr {
    match name {
        "true" | "True" => Expr::Const(Const::Bool(true)),
        "false" | "False" => Expr::Const(Const::Bool(false)),
        "none" | "None" => Expr::Const(Const::None),
        _ => Expr::Name(Variable::new(name)),
    }
}
