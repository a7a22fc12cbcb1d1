//! The statements behind `{%`, each from behind its name to the end of its tag or body.

use super::super::ast::{Block, Expr, For, LoopTest, Macro, Part, Scope, Slot, Stmt, Variable};
use super::super::lexer::Token;
use super::{Parsed, Parser};

impl Parser<'_> {
    pub(super) fn parse_for(&mut self, line: u32) -> Parsed<Stmt> {
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
        let parsed =
            For { target, iterable, test, recursive, top: false, loop_slot: None, scope, otherwise, slots: 0, line };
        Ok(Stmt::For(Box::new(parsed)))
    }

    pub(super) fn parse_if(&mut self, line: u32) -> Parsed<Stmt> {
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

    pub(super) fn parse_set(&mut self, line: u32) -> Parsed<Stmt> {
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
    pub(super) fn signature(&mut self) -> Parsed<(Vec<Variable>, Vec<Expr>)> {
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

    pub(super) fn parse_macro(&mut self, line: u32) -> Parsed<Stmt> {
        let name = self.assignable_name()?;
        let (parameters, defaults) = self.signature()?;
        let body = self.closed_body(&["endmacro"])?;
        let definition = Box::new(new_macro(name.clone(), parameters, defaults, body, line));
        Ok(Stmt::Macro { variable: Variable::new(name), definition, exported: false })
    }

    pub(super) fn parse_call_block(&mut self, line: u32) -> Parsed<Stmt> {
        let (parameters, defaults) = if self.is_operator("(") { self.signature()? } else { Default::default() };
        let Expr::Call(call) = self.expression()? else { return self.fail("a call is expected") };
        let body = self.closed_body(&["endcall"])?;
        let body = Box::new(new_macro("".into(), parameters, defaults, body, line));
        Ok(Stmt::CallBlock { body, call: *call })
    }

    pub(super) fn parse_filter_block(&mut self, line: u32) -> Parsed<Stmt> {
        let filter = self.filter_chain_start()?;
        let scope = Scope::new(self.closed_body(&["endfilter"])?);
        Ok(Stmt::FilterBlock { filter, scope, line })
    }

    pub(super) fn parse_with(&mut self, line: u32) -> Parsed<Stmt> {
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

    pub(super) fn parse_print(&mut self, line: u32) -> Parsed<Stmt> {
        let mut parts = Vec::new();
        while *self.peek() != Token::BlockEnd {
            if !parts.is_empty() {
                self.expect_operator(",")?;
            }
            parts.push(Part::Expr(self.expression()?, line));
        }
        Ok(Stmt::Output(parts))
    }

    pub(super) fn parse_generation(&mut self, _: u32) -> Parsed<Stmt> {
        let scope = Scope::new(self.closed_body(&["endgeneration"])?);
        Ok(Stmt::Generation { scope, unset: Vec::new() })
    }

    pub(super) fn parse_autoescape(&mut self, line: u32) -> Parsed<Stmt> {
        let enabled = self.expression()?;
        let scope = Scope::new(self.closed_body(&["endautoescape"])?);
        Ok(Stmt::AutoEscape { enabled, scope, line })
    }

    pub(super) fn parse_block(&mut self, line: u32) -> Parsed<Stmt> {
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
        self.blocks.push(Block { name: name.clone(), scope: Scope::new(body), slots: 0, self_slot: None });
        Ok(Stmt::Block { name, index: self.blocks.len() - 1, required, line })
    }

    pub(super) fn parse_load(&mut self, tag: &str, line: u32) -> Parsed<Stmt> {
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

    pub(super) fn imported_names(&mut self) -> Parsed<Vec<Variable>> {
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

    pub(super) fn context_clause(&mut self) -> bool {
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
