//! What stands behind an expression: attributes, subscripts, calls, filters and tests.

use super::super::ast::{Arguments, Attribute, Call, Expr, FilterCall, TestCall};
use super::super::lexer::Token;
use super::super::loops::LoopProperty;
use super::super::methods;
use super::super::number::integer_from_literal;
use super::{Parsed, Parser};
use crate::message::shared;

impl Parser<'_> {
    pub(super) fn postfix(&mut self, mut node: Expr) -> Parsed<Expr> {
        for length in 0.. {
            self.chain(length)?;
            node = match self.peek() {
                Token::Operator(".") => self.attribute(node)?,
                Token::Operator("[") => self.subscript(node)?,
                Token::Operator("(") => self.call(node)?,
                _ => break,
            };
        }
        Ok(node)
    }

    pub(super) fn filters_and_tests(&mut self, mut node: Expr) -> Parsed<Expr> {
        for length in 0.. {
            self.chain(length)?;
            node = match self.peek() {
                Token::Operator("|") => self.filters(Some(node))?,
                Token::Name(name) if &**name == "is" => self.test(node)?,
                Token::Operator("(") => self.call(node)?,
                _ => break,
            };
        }
        Ok(node)
    }

    pub(super) fn attribute(&mut self, object: Expr) -> Parsed<Expr> {
        self.advance();
        let expr = match self.peek() {
            Token::Name(name) => Expr::Attribute(Box::new(new_attribute(object, name))),
            Token::Integer(digits) => Expr::Item(Box::new((object, Expr::Const(integer_from_literal(digits))))),
            _ => return self.expected("a name or a number"),
        };
        self.advance();
        Ok(expr)
    }

    pub(super) fn subscript(&mut self, object: Expr) -> Parsed<Expr> {
        self.advance();
        let mut items = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            items.push(self.subscribed()?);
        }
        self.expect_operator("]")?;
        let key = if items.len() == 1 { items.remove(0) } else { Expr::Tuple(items.into()) };
        Ok(Expr::Item(Box::new((object, key))))
    }

    pub(super) fn subscribed(&mut self) -> Parsed<Expr> {
        let from = if self.is_operator(":") { None } else { Some(self.expression()?) };
        if !self.skip_operator(":") {
            return from.map_or_else(|| self.expected("an expression"), Ok);
        }
        let to = self.bound()?;
        let step = if self.skip_operator(":") { self.bound()? } else { None };
        Ok(Expr::Slice(Box::new([from, to, step])))
    }

    pub(super) fn bound(&mut self) -> Parsed<Option<Expr>> {
        let none = [":", "]", ","].iter().any(|operator| self.is_operator(operator));
        if none { Ok(None) } else { self.expression().map(Some) }
    }

    pub(super) fn call(&mut self, callee: Expr) -> Parsed<Expr> {
        let line = self.line();
        let arguments = self.arguments()?;
        Ok(Expr::Call(Box::new(Call { callee, arguments, line })))
    }

    pub(super) fn arguments(&mut self) -> Parsed<Arguments> {
        self.expect_operator("(")?;
        let mut arguments = Arguments::default();
        let mut first = true;
        while !self.is_operator(")") {
            if !first {
                self.expect_operator(",")?;
                if self.is_operator(")") {
                    break;
                }
            }
            first = false;
            self.argument(&mut arguments)?;
        }
        self.expect_operator(")")?;
        Ok(arguments)
    }

    pub(super) fn argument(&mut self, arguments: &mut Arguments) -> Parsed<()> {
        let keyword = matches!((self.peek(), self.look()), (Token::Name(_), Token::Operator("=")));
        let (starred, double) = (arguments.star.is_some(), arguments.double_star.is_some());
        let allowed = if self.is_operator("*") {
            !starred && !double
        } else if self.is_operator("**") || keyword {
            !double
        } else {
            !starred && !double && arguments.named.is_empty()
        };
        if !allowed {
            return self.fail("invalid syntax for function call expression");
        }
        if self.skip_operator("*") {
            arguments.star = Some(self.expression()?);
        } else if self.skip_operator("**") {
            arguments.double_star = Some(self.expression()?);
        } else if keyword {
            let name = self.expect_name()?;
            self.advance();
            arguments.named.push((name, self.expression()?));
        } else {
            arguments.positional.push(self.expression()?);
        }
        Ok(())
    }

    /// `|name(arguments)` as often as it stands there.
    pub(super) fn filters(&mut self, mut input: Option<Expr>) -> Parsed<Expr> {
        let mut length = 0;
        while self.skip_operator("|") {
            self.chain(length)?;
            length += 1;
            input = Some(self.filter(input)?);
        }
        input.map_or_else(|| self.expected("a filter"), Ok)
    }

    /// The filters of a filter block, the first of which has no `|` before it.
    pub(super) fn filter_chain_start(&mut self) -> Parsed<Expr> {
        let first = self.filter(None)?;
        if self.is_operator("|") { self.filters(Some(first)) } else { Ok(first) }
    }

    pub(super) fn filter(&mut self, input: Option<Expr>) -> Parsed<Expr> {
        let line = self.line();
        let name = self.dotted_name()?;
        let arguments = if self.is_operator("(") { self.arguments()? } else { Arguments::default() };
        let is_length = matches!(&*name, "length" | "count") && arguments.is_empty();
        Ok(Expr::Filter(Box::new(FilterCall { input, name, filter: None, is_length, arguments, line })))
    }

    pub(super) fn dotted_name(&mut self) -> Parsed<Box<str>> {
        let mut name = self.expect_name()?.into_string();
        while self.skip_operator(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        Ok(name.into())
    }

    pub(super) fn test(&mut self, input: Expr) -> Parsed<Expr> {
        let line = self.line();
        self.advance();
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let arguments = self.test_arguments()?;
        let test = Expr::Test(Box::new(TestCall { input, name, test: None, arguments, line }));
        Ok(if negated { Expr::Not(Box::new(test)) } else { test })
    }

    /// A test takes arguments in brackets, or one primary expression without them.
    pub(super) fn test_arguments(&mut self) -> Parsed<Arguments> {
        let single = match self.peek() {
            Token::Operator("(") => return self.arguments(),
            Token::Name(name) if &**name == "is" => return self.fail("tests cannot be chained with 'is'"),
            Token::Name(name) => !matches!(&**name, "else" | "or" | "and"),
            Token::Text(_) | Token::Integer(_) | Token::Float(_) | Token::Operator("[" | "{") => true,
            _ => false,
        };
        let mut arguments = Arguments::default();
        if single {
            let argument = self.primary()?;
            arguments.positional.push(self.postfix(argument)?);
        }
        Ok(arguments)
    }
}

fn new_attribute(object: Expr, name: &str) -> Attribute {
    let only_key = !methods::is_dict_attribute(name) && !name.starts_with("__");
    Attribute {
        object,
        name: shared(name),
        only_key,
        on_text: methods::find_text(name),
        on_loop: LoopProperty::find(name),
    }
}
