//! Tokens to statements. Expressions are parsed in `parser/expression.rs`.

mod expression;

use super::ast::{Block, Expr, For, LoopTest, Macro, Part, Scope, Slot, Stmt, Tree, Variable};
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

    fn parse_for(&mut self, line: u32) -> Parsed<Stmt> {
        let target = self.target(false, &["in"])?;
        self.expect_keyword("in")?;
        let iterable = self.tuple(false, false, &["recursive"])?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let body = self.body(&["endfor", "else"])?;
        let otherwise = if self.skip_name("else") { Some(Scope::new(self.body(&["endfor"])?)) } else { None };
        self.advance();
        let test = test.map(|test| LoopTest { target: target.clone(), loads: Box::default(), test });
        let scope = Scope::new(body);
        let otherwise = otherwise.filter(|scope| !scope.body.is_empty());
        let parsed = For { target, iterable, test, recursive, loop_slot: None, scope, otherwise, slots: 0, line };
        Ok(Stmt::For(Box::new(parsed)))
    }

    fn parse_if(&mut self, line: u32) -> Parsed<Stmt> {
        let mut branches = Vec::new();
        let mut line = line;
        loop {
            let test = self.tuple(false, false, &[])?;
            let body = self.body(&["elif", "else", "endif"])?;
            branches.push((test, body, line));
            line = self.line();
            if !self.skip_name("elif") {
                break;
            }
        }
        let otherwise = if self.skip_name("else") { self.body(&["endif"])? } else { Vec::new() };
        self.advance();
        Ok(Stmt::If { branches, otherwise })
    }

    fn parse_set(&mut self, line: u32) -> Parsed<Stmt> {
        let target = self.target(true, &[])?;
        if self.skip_operator("=") {
            let value = self.tuple(true, false, &[])?;
            return Ok(Stmt::Set { target, value, line, exported: false });
        }
        let filter = if self.is_operator("|") { Some(self.filters(None)?) } else { None };
        let scope = Scope::new(self.closed_body(&["endset"])?);
        Ok(Stmt::SetBlock { target, filter, scope, line, exported: false })
    }

    /// The parameters of a macro or call block, with the defaults of the last ones.
    fn signature(&mut self) -> Parsed<(Vec<Variable>, Vec<Expr>)> {
        self.expect_operator("(")?;
        let (mut parameters, mut defaults) = (Vec::new(), Vec::new());
        while !self.is_operator(")") {
            if !parameters.is_empty() {
                self.expect_operator(",")?;
            }
            let name = self.assignable_name()?;
            if self.skip_operator("=") {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return self.fail("a parameter without a default follows one with a default");
            }
            parameters.push(Variable::new(name));
        }
        self.expect_operator(")")?;
        Ok((parameters, defaults))
    }

    fn parse_macro(&mut self, line: u32) -> Parsed<Stmt> {
        let name = self.assignable_name()?;
        let (parameters, defaults) = self.signature()?;
        let body = self.closed_body(&["endmacro"])?;
        let definition = Box::new(new_macro(name.clone(), parameters, defaults, body, line));
        Ok(Stmt::Macro { variable: Variable::new(name), definition, exported: false })
    }

    fn parse_call_block(&mut self, line: u32) -> Parsed<Stmt> {
        let (parameters, defaults) = if self.is_operator("(") { self.signature()? } else { Default::default() };
        let Expr::Call(call) = self.expression()? else { return self.fail("a call is expected") };
        let body = self.closed_body(&["endcall"])?;
        let body = Box::new(new_macro("".into(), parameters, defaults, body, line));
        Ok(Stmt::CallBlock { body, call: *call })
    }

    fn parse_filter_block(&mut self, line: u32) -> Parsed<Stmt> {
        let filter = self.filter_chain_start()?;
        let scope = Scope::new(self.closed_body(&["endfilter"])?);
        Ok(Stmt::FilterBlock { filter, scope, line })
    }

    fn parse_with(&mut self, line: u32) -> Parsed<Stmt> {
        let mut targets = Vec::new();
        while *self.peek() != Token::BlockEnd {
            if !targets.is_empty() {
                self.expect_operator(",")?;
            }
            let target = self.target(false, &[])?;
            self.expect_operator("=")?;
            targets.push((target, self.expression()?));
        }
        let scope = Scope::new(self.closed_body(&["endwith"])?);
        Ok(Stmt::With { targets, scope, line })
    }

    fn parse_print(&mut self, line: u32) -> Parsed<Stmt> {
        let mut parts = Vec::new();
        while *self.peek() != Token::BlockEnd {
            if !parts.is_empty() {
                self.expect_operator(",")?;
            }
            parts.push(Part::Expr(self.expression()?, line));
        }
        Ok(Stmt::Output(parts))
    }

    fn parse_generation(&mut self, _: u32) -> Parsed<Stmt> {
        let scope = Scope::new(self.closed_body(&["endgeneration"])?);
        Ok(Stmt::Generation { scope, unset: Vec::new() })
    }

    fn parse_autoescape(&mut self, line: u32) -> Parsed<Stmt> {
        let enabled = self.expression()?;
        let scope = Scope::new(self.closed_body(&["endautoescape"])?);
        Ok(Stmt::AutoEscape { enabled, scope, line })
    }

    fn parse_block(&mut self, line: u32) -> Parsed<Stmt> {
        let name = self.expect_name()?;
        self.skip_name("scoped");
        let required = self.skip_name("required");
        if self.is_operator("-") {
            return self.fail("the name of a block has no hyphens");
        }
        let body = self.closed_body(&["endblock"])?;
        let blank = |part: &Part| matches!(part, Part::Text(text) if text.trim().is_empty());
        if required && !body.iter().all(|stmt| matches!(stmt, Stmt::Output(parts) if parts.iter().all(blank))) {
            return self.fail("a required block holds nothing but white space");
        }
        self.skip_name(&name);
        if self.blocks.iter().any(|block| block.name == name) {
            return self.fail_with("TemplateAssertionError", format!("block '{name}' is defined twice"));
        }
        self.blocks.push(Block { name: name.clone(), scope: Scope::new(body), slots: 0 });
        Ok(Stmt::Block { name, index: self.blocks.len() - 1, required, line })
    }

    fn parse_load(&mut self, tag: &str, line: u32) -> Parsed<Stmt> {
        let template = self.expression()?;
        let mut targets = Vec::new();
        if tag == "include"
            && self.is_name("ignore")
            && matches!(self.look(), Token::Name(name) if &**name == "missing")
        {
            self.advance();
            self.advance();
        } else if tag == "import" {
            self.expect_keyword("as")?;
            targets.push(Variable::new(self.assignable_name()?));
        } else if tag == "from" {
            targets = self.imported_names()?;
        }
        self.context_clause();
        Ok(Stmt::Load { template, targets, line })
    }

    fn imported_names(&mut self) -> Parsed<Vec<Variable>> {
        self.expect_keyword("import")?;
        let mut names = Vec::new();
        loop {
            if !names.is_empty() {
                self.expect_operator(",")?;
            }
            if self.context_clause() {
                break;
            }
            let name = self.assignable_name()?;
            if name.starts_with('_') {
                return self.fail_with("TemplateAssertionError", "names with an underscore in front are not imported");
            }
            let name = if self.skip_name("as") { self.assignable_name()? } else { name };
            names.push(Variable::new(name));
            if self.context_clause() || !self.is_operator(",") {
                break;
            }
        }
        Ok(names)
    }

    fn context_clause(&mut self) -> bool {
        let clause = (self.is_name("with") || self.is_name("without"))
            && matches!(self.look(), Token::Name(name) if &**name == "context");
        if clause {
            self.advance();
            self.advance();
        }
        clause
    }
}

fn new_macro(name: Box<str>, parameters: Vec<Variable>, defaults: Vec<Expr>, body: Vec<Stmt>, line: u32) -> Macro {
    let none: Option<Slot> = None;
    Macro {
        name,
        parameters,
        defaults,
        scope: Scope::new(body),
        slots: 0,
        caller: none,
        kwargs: none,
        varargs: none,
        line,
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
