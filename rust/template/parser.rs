//! Tokens to statements. Statements are parsed in `parser/statement.rs`, expressions in
//! `parser/expression.rs`.

mod expression;
mod postfix;
mod statement;

use super::ast::{Block, Part, Scope, Stmt, Tree};
use super::failure::Failure;
use super::lexer::{SyntaxError, Token, Tokens, tokenize};

/// Nesting of statements and expressions, and length of a chain of operators: Python gives up at about these too.
const DEPTH: usize = 100;
const CHAIN: usize = 250;

type Parsed<T> = Result<T, Failure>;

/// Parses a normalised source.
pub(super) fn parse(source: &str) -> Parsed<Tree> {
    let Tokens { tokens, error } = tokenize(source);
    let mut parser = Parser {
        tokens,
        at: 0,
        source,
        lines: line_starts(source),
        error,
        ends: Vec::new(),
        depth: 0,
        blocks: Vec::new(),
    };
    let body = parser.statements_until(&[])?;
    let blocks = parser.blocks;
    Ok(Tree { scope: Scope::new(body), blocks, ..Tree::default() })
}

fn line_starts(source: &str) -> Vec<usize> {
    std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

struct Parser<'s> {
    tokens: Vec<(Token, usize)>,
    at: usize,
    source: &'s str,
    lines: Vec<usize>,
    /// Why there are no more tokens, if not because the source ends.
    error: Option<SyntaxError>,
    /// The tags that would close the open statements.
    ends: Vec<&'static [&'static str]>,
    depth: usize,
    blocks: Vec<Block>,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn look(&self) -> &Token {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].0
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn line(&self) -> u32 {
        self.line_of(self.tokens[self.at].1)
    }

    fn line_of(&self, offset: usize) -> u32 {
        self.lines.partition_point(|start| *start <= offset) as u32
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Token::Name(found) if **found == *name)
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.advance();
        }
        found
    }

    fn is_operator(&self, operator: &str) -> bool {
        matches!(self.peek(), Token::Operator(found) if *found == operator)
    }

    fn skip_operator(&mut self, operator: &str) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.advance();
        }
        found
    }

    fn expect_operator(&mut self, operator: &str) -> Parsed<()> {
        if self.skip_operator(operator) { Ok(()) } else { self.expected(&format!("'{operator}'")) }
    }

    fn expect_name(&mut self) -> Parsed<Box<str>> {
        let Token::Name(name) = self.peek() else { return self.expected("a name") };
        let name = name.clone();
        self.advance();
        Ok(name)
    }

    fn expect_keyword(&mut self, name: &str) -> Parsed<()> {
        if self.skip_name(name) { Ok(()) } else { self.expected(&format!("'{name}'")) }
    }

    fn expect(&mut self, token: &Token) -> Parsed<()> {
        if self.peek() == token {
            self.advance();
            return Ok(());
        }
        self.expected(describe(token))
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        self.fail(format!("expected {what}, got {}", self.shown()))
    }

    /// The current token, in words.
    fn shown(&self) -> String {
        match self.peek() {
            Token::Name(name) => format!("'{name}'"),
            Token::Operator(operator) => format!("'{operator}'"),
            token => describe(token).to_owned(),
        }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        self.fail_with("TemplateSyntaxError", message)
    }

    /// An error at the current token; at the end of the tokens, the reason why they end.
    fn fail_with<T>(&self, class: &'static str, message: impl Into<String>) -> Parsed<T> {
        if let (Token::End, Some(error)) = (self.peek(), &self.error) {
            return Err(self.failure("TemplateSyntaxError", error.message.clone(), error.offset));
        }
        Err(self.failure(class, message.into(), self.tokens[self.at].1))
    }

    fn failure(&self, class: &'static str, message: String, offset: usize) -> Failure {
        let line = self.line_of(offset);
        let start = self.lines[line as usize - 1];
        let column = self.source[start..offset].chars().count() + 1;
        Failure { class, message, line, column: Some(column as u32) }
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEPTH {
            return self.fail_with("RecursionError", "the template is nested too deeply");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn chain(&self, length: usize) -> Parsed<()> {
        if length < CHAIN { Ok(()) } else { self.fail_with("RecursionError", "the expression is too long") }
    }

    /// Statements up to one of the tags `ends`, which is the current token afterwards; up to the end for no tags.
    fn statements_until(&mut self, ends: &'static [&'static str]) -> Parsed<Vec<Stmt>> {
        self.ends.push(ends);
        let mut body = Vec::new();
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                Token::Data(text) => {
                    parts.push(Part::Text(text.clone()));
                    self.advance();
                }
                Token::VariableBegin => {
                    self.advance();
                    let line = self.line();
                    let expr = self.tuple(true, false, &[])?;
                    parts.push(Part::Expr(expr, line));
                    self.expect(&Token::VariableEnd)?;
                }
                Token::BlockBegin => {
                    flush(&mut parts, &mut body);
                    self.advance();
                    if ends.iter().any(|end| self.is_name(end)) {
                        break;
                    }
                    let statement = self.nested(Self::statement)?;
                    body.extend(statement);
                    self.expect(&Token::BlockEnd)?;
                }
                _ if ends.is_empty() && self.error.is_none() => {
                    flush(&mut parts, &mut body);
                    break;
                }
                _ => return self.unclosed(None),
            }
        }
        self.ends.pop();
        Ok(body)
    }

    fn unclosed<T>(&self, tag: Option<&str>) -> Parsed<T> {
        let mut message = match tag {
            None => "unexpected end of template".to_owned(),
            Some(tag) => format!("unknown tag '{tag}'"),
        };
        if let Some(ends) = self.ends.last().filter(|ends| !ends.is_empty()) {
            let tags: Vec<String> = ends.iter().map(|end| format!("'{end}'")).collect();
            message = format!("{message}; {} is expected here", tags.join(" or "));
        }
        self.fail(message)
    }

    /// The statements of a tag's body, from the end of the opening tag to one of `ends`.
    fn body(&mut self, ends: &'static [&'static str]) -> Parsed<Vec<Stmt>> {
        self.skip_operator(":");
        self.expect(&Token::BlockEnd)?;
        self.statements_until(ends)
    }

    /// A body that ends with the one tag `end`, which is passed.
    fn closed_body(&mut self, end: &'static [&'static str]) -> Parsed<Vec<Stmt>> {
        let body = self.body(end)?;
        self.advance();
        Ok(body)
    }

    fn statement(&mut self) -> Parsed<Option<Stmt>> {
        let line = self.line();
        let Token::Name(tag) = self.peek() else { return self.fail("a tag name is expected") };
        let tag = tag.clone();
        let parse = match &*tag {
            "for" => Self::parse_for,
            "if" => Self::parse_if,
            "set" => Self::parse_set,
            "macro" => Self::parse_macro,
            "call" => Self::parse_call_block,
            "filter" => Self::parse_filter_block,
            "with" => Self::parse_with,
            "print" => Self::parse_print,
            "generation" => Self::parse_generation,
            "autoescape" => Self::parse_autoescape,
            "block" => Self::parse_block,
            "include" | "extends" | "import" | "from" => {
                self.advance();
                return self.parse_load(&tag, line).map(Some);
            }
            "break" => |_: &mut Self, line| Ok(Stmt::Break(line)),
            "continue" => |_: &mut Self, line| Ok(Stmt::Continue(line)),
            _ => return self.unclosed(Some(&tag)),
        };
        self.advance();
        parse(self, line).map(Some)
    }
}

fn flush(parts: &mut Vec<Part>, body: &mut Vec<Stmt>) {
    if !parts.is_empty() {
        body.push(Stmt::Output(std::mem::take(parts)));
    }
}

fn describe(token: &Token) -> &'static str {
    match token {
        Token::Data(_) => "text of the template",
        Token::VariableBegin => "'{{'",
        Token::VariableEnd => "'}}'",
        Token::BlockBegin => "'{%'",
        Token::BlockEnd => "'%}'",
        Token::Name(_) => "a name",
        Token::Text(_) => "a string",
        Token::Integer(_) | Token::Float(_) => "a number",
        Token::Operator(operator) => operator,
        Token::End => "the end of the template",
    }
}
