//! Gives every name its slot and every filter and test its function, and refuses what Jinja refuses when it compiles.
//!
//! Two passes over each scope: the first (`resolver/analysis.rs`) notes what the scope reads and assigns, the second
//! writes the slots into the tree. Unknown filters and tests are refused here, unless a branch may never reach them.

mod analysis;
mod sinking;

use super::ast::{
    Arguments, Block, Expr, FilterCall, For, LoopTest, Macro, Part, Scope, Stmt, Target, TestCall, Tree, Variable,
};
use super::failure::Failure;
use super::names::FreeName;
use super::symbols::{LevelId, Symbols};
use super::{filters, tests};

type Resolved<T = ()> = Result<T, Failure>;

/// Resolves a parsed template.
pub(super) fn resolve(tree: &mut Tree) -> Resolved {
    let mut resolver = Resolver { symbols: Symbols::new(), blocks: !tree.blocks.is_empty() };
    let root = Place { level: 0, soft: false, in_loop: false, top: true };
    if analysis::reads(&tree.scope.body, "self") {
        tree.self_slot = Some(resolver.symbols.parameter(0, "self"));
    }
    resolver.symbols.analyse(0, &tree.scope.body);
    resolver.statements(root, &mut tree.scope.body)?;
    tree.scope.loads = resolver.symbols.loads(0);
    for block in &mut tree.blocks {
        resolver.block(block)?;
    }
    tree.slots = resolver.symbols.slots(0);
    tree.arguments = resolver.symbols.arguments();
    tree.resolved = resolver.symbols.resolved().into_iter().map(FreeName::new).collect();
    sinking::sink(tree);
    Ok(())
}

/// Where in the template the resolver is.
#[derive(Debug, Clone, Copy)]
struct Place {
    level: LevelId,
    /// In a branch that may never be reached: an unknown filter is an error only when it is.
    soft: bool,
    in_loop: bool,
    /// Outside every scope, so that assignments are visible in blocks.
    top: bool,
}

impl Place {
    fn inner(self, level: LevelId) -> Self {
        Self { level, soft: false, in_loop: self.in_loop, top: false }
    }

    fn function(level: LevelId) -> Self {
        Self { level, soft: false, in_loop: false, top: false }
    }

    fn soft(self) -> Self {
        Self { soft: true, ..self }
    }
}

struct Resolver {
    symbols: Symbols,
    /// Whether the template has blocks, which see the assignments of the top level.
    blocks: bool,
}

impl Resolver {
    fn block(&mut self, block: &mut Block) -> Resolved {
        let level = self.symbols.isolated();
        if analysis::reads(&block.scope.body, "self") {
            block.self_slot = Some(self.symbols.parameter(level, "self"));
        }
        self.symbols.analyse(level, &block.scope.body);
        self.statements(Place::function(level), &mut block.scope.body)?;
        block.scope.loads = self.symbols.loads(level);
        block.slots = self.symbols.slots(level);
        Ok(())
    }

    fn statements(&mut self, place: Place, body: &mut [Stmt]) -> Resolved {
        body.iter_mut().try_for_each(|stmt| self.statement(place, stmt))
    }

    fn statement(&mut self, place: Place, stmt: &mut Stmt) -> Resolved {
        match stmt {
            Stmt::Output(parts) => parts.iter_mut().try_for_each(|part| match part {
                Part::Text(_) => Ok(()),
                Part::Expr(expr, line) => self.expr(place, expr, *line),
            }),
            Stmt::Set { target, value, line, exported } => {
                *exported = place.top && self.blocks;
                self.target(place, target)?;
                self.expr(place, value, *line)
            }
            Stmt::SetBlock { target, filter, scope, line, exported } => {
                *exported = place.top && self.blocks;
                self.target(place, target)?;
                let inner = self.scope(place, scope)?;
                filter.as_mut().map_or(Ok(()), |filter| self.expr(inner, filter, *line))
            }
            Stmt::For(node) => self.loop_(place, node),
            Stmt::If { branches, otherwise } => {
                for (test, body, line) in branches {
                    self.expr(place.soft(), test, *line)?;
                    self.statements(place.soft(), body)?;
                }
                self.statements(place.soft(), otherwise)
            }
            Stmt::Macro { variable, definition, exported } => {
                *exported = place.top && self.blocks;
                self.name(place, variable, definition.line)?;
                self.macro_(place, definition)
            }
            Stmt::CallBlock { body, call } => {
                self.macro_(place, body)?;
                self.expr(place, &mut call.callee, call.line)?;
                self.arguments(place, &mut call.arguments, call.line)
            }
            Stmt::FilterBlock { filter, scope, line } => {
                let level = self.symbols.inner(place.level);
                self.symbols.analyse(level, &scope.body);
                self.symbols.analyse_expr(level, filter);
                let inner = self.analysed_scope(place.inner(level), scope)?;
                self.expr(inner, filter, *line)
            }
            Stmt::With { targets, scope, line } => self.with(place, targets, scope, *line),
            Stmt::Generation { scope, unset } => self.generation(place, scope, unset),
            Stmt::AutoEscape { enabled, scope, line } => {
                let level = self.symbols.inner(place.level);
                self.symbols.analyse_expr(level, enabled);
                self.symbols.analyse(level, &scope.body);
                let inner = self.analysed_scope(place.inner(level), scope)?;
                self.expr(inner, enabled, *line)
            }
            Stmt::Load { template, targets, line, .. } => {
                self.expr(place, template, *line)?;
                targets.iter_mut().try_for_each(|target| self.name(place, target, *line))
            }
            Stmt::Break(line) | Stmt::Continue(line) if !place.in_loop => {
                Err(Failure::at_line("SyntaxError", *line, "'break' and 'continue' stand only in loops"))
            }
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Block { .. } => Ok(()),
        }
    }

    /// A scope in the same function; what it reads and assigns is its body.
    fn scope(&mut self, place: Place, scope: &mut Scope) -> Resolved<Place> {
        let level = self.symbols.inner(place.level);
        self.symbols.analyse(level, &scope.body);
        self.analysed_scope(place.inner(level), scope)
    }

    fn analysed_scope(&mut self, inner: Place, scope: &mut Scope) -> Resolved<Place> {
        scope.loads = self.symbols.loads(inner.level);
        self.statements(inner, &mut scope.body)?;
        Ok(inner)
    }

    fn generation(&mut self, place: Place, scope: &mut Scope, unset: &mut Vec<super::ast::Slot>) -> Resolved {
        let level = self.symbols.inner(place.level);
        self.symbols.analyse(level, &scope.body);
        for name in analysis::special_reads(&scope.body) {
            unset.push(self.symbols.parameter(level, name));
        }
        let inner = Place { in_loop: false, ..place.inner(level) };
        self.analysed_scope(inner, scope).map(drop)
    }

    fn with(&mut self, place: Place, targets: &mut [(Target, Expr)], scope: &mut Scope, line: u32) -> Resolved {
        let level = self.symbols.inner(place.level);
        for (target, _) in targets.iter() {
            self.symbols.parameters_of(level, target);
        }
        self.symbols.analyse(level, &scope.body);
        let inner = place.inner(level);
        for (target, value) in targets {
            self.expr(place, value, line)?;
            self.target(inner, target)?;
        }
        self.analysed_scope(inner, scope).map(drop)
    }

    fn loop_(&mut self, place: Place, node: &mut For) -> Resolved {
        if analysis::assigns(std::slice::from_ref(&node.target), &node.scope.body, node.otherwise.as_ref(), "loop") {
            let message = "the special variable 'loop' cannot be assigned in a loop";
            return Err(Failure::at_line("TemplateAssertionError", node.line, message));
        }
        node.top = place.top && !node.recursive && node.test.is_none();
        self.expr(place, &mut node.iterable, node.line)?;
        let outer = if node.recursive { self.symbols.function(place.level) } else { place.level };
        let outer = Place { level: outer, in_loop: place.in_loop && !node.recursive, ..place };
        let level = self.symbols.inner(outer.level);
        if node.recursive || analysis::reads(&node.scope.body, "loop") {
            node.loop_slot = Some(self.symbols.parameter(level, "loop"));
        }
        self.symbols.parameters_of(level, &node.target);
        self.symbols.analyse(level, &node.scope.body);
        let body = Place { in_loop: true, ..outer.inner(level) };
        self.target(body, &mut node.target)?;
        self.analysed_scope(body, &mut node.scope)?;
        if let Some(test) = &mut node.test {
            self.loop_test(outer, test, node.line)?;
        }
        if let Some(otherwise) = &mut node.otherwise {
            self.scope(outer, otherwise)?;
        }
        node.slots = self.symbols.slots(outer.level);
        Ok(())
    }

    fn loop_test(&mut self, outer: Place, test: &mut LoopTest, line: u32) -> Resolved {
        let level = self.symbols.apart(outer.level);
        self.symbols.parameters_of(level, &test.target);
        self.symbols.analyse_expr(level, &test.test);
        let inner = Place { in_loop: false, ..outer.inner(level) };
        self.target(inner, &mut test.target)?;
        test.loads = self.symbols.loads(level);
        self.expr(inner, &mut test.test, line)
    }

    fn macro_(&mut self, place: Place, node: &mut Macro) -> Resolved {
        let repeated =
            |(at, parameter): (usize, &Variable)| node.parameters[..at].iter().any(|p| p.name == parameter.name);
        if node.parameters.iter().enumerate().any(repeated) {
            return Err(Failure::at_line("SyntaxError", node.line, "a parameter appears twice"));
        }
        let level = self.symbols.function(place.level);
        for parameter in &mut node.parameters {
            parameter.slot = self.symbols.parameter(level, &parameter.name);
        }
        for default in &node.defaults {
            self.symbols.analyse_expr(level, default);
        }
        self.symbols.analyse(level, &node.scope.body);
        self.special_parameters(level, node)?;
        let inner = Place::function(level);
        for default in &mut node.defaults {
            self.expr(inner, default, node.line)?;
        }
        self.analysed_scope(inner, &mut node.scope)?;
        node.slots = self.symbols.slots(level);
        Ok(())
    }

    /// `caller`, `kwargs` and `varargs` exist in a macro whose body reads them.
    fn special_parameters(&mut self, level: LevelId, node: &mut Macro) -> Resolved {
        for name in analysis::special_reads(&node.scope.body) {
            let explicit = node.parameters.iter().position(|parameter| &*parameter.name == name);
            if let Some(position) = explicit {
                if name == "caller" && node.parameters.len() - position > node.defaults.len() {
                    let message = "the special parameter 'caller' is left out or has a default";
                    return Err(Failure::at_line("TemplateAssertionError", node.line, message));
                }
                continue;
            }
            let slot = Some(self.symbols.parameter(level, name));
            match name {
                "caller" => node.caller = slot,
                "kwargs" => node.kwargs = slot,
                _ => node.varargs = slot,
            }
        }
        Ok(())
    }

    fn target(&mut self, place: Place, target: &mut Target) -> Resolved {
        match target {
            Target::Name(variable) | Target::Field(variable, _) => self.name(place, variable, 1),
            Target::Tuple(items) => items.iter_mut().try_for_each(|item| self.target(place, item)),
        }
    }

    fn name(&mut self, place: Place, variable: &mut Variable, line: u32) -> Resolved {
        let found = self.symbols.slot_of(place.level, &variable.name);
        let unbound = || Failure::at_line("AssertionError", line, format!("'{}' is bound to nothing", variable.name));
        variable.slot = found.ok_or_else(unbound)?;
        Ok(())
    }

    fn exprs(&mut self, place: Place, items: &mut [Expr], line: u32) -> Resolved {
        items.iter_mut().try_for_each(|item| self.expr(place, item, line))
    }

    fn expr(&mut self, place: Place, expr: &mut Expr, line: u32) -> Resolved {
        match expr {
            Expr::Const(_) => Ok(()),
            Expr::Name(variable) => self.name(place, variable, line),
            Expr::Tuple(items) | Expr::List(items) | Expr::Concat(items) => self.exprs(place, items, line),
            Expr::And(operands) | Expr::Or(operands) | Expr::Sum(operands) => self.exprs(place, operands, line),
            Expr::Dict(entries) => entries.iter_mut().try_for_each(|(key, value)| {
                self.expr(place, key, line)?;
                self.expr(place, value, line)
            }),
            Expr::Not(inner) | Expr::Neg(inner) | Expr::Pos(inner) => self.expr(place, inner, line),
            Expr::Binary(_, pair) | Expr::Item(pair) => {
                self.expr(place, &mut pair.0, line)?;
                self.expr(place, &mut pair.1, line)
            }
            Expr::Compare(node) => {
                self.expr(place, &mut node.first, line)?;
                node.rest.iter_mut().try_for_each(|(_, operand)| self.expr(place, operand, line))
            }
            Expr::Condition(node) => {
                let soft = place.soft();
                self.expr(soft, &mut node.test, line)?;
                self.expr(soft, &mut node.then, line)?;
                node.otherwise.as_mut().map_or(Ok(()), |otherwise| self.expr(soft, otherwise, line))
            }
            Expr::Attribute(node) => self.expr(place, &mut node.object, line),
            Expr::Slice(bounds) => bounds.iter_mut().flatten().try_for_each(|bound| self.expr(place, bound, line)),
            Expr::Call(node) => {
                self.expr(place, &mut node.callee, line)?;
                self.arguments(place, &mut node.arguments, node.line)
            }
            Expr::Filter(node) => self.filter(place, node),
            Expr::Test(node) => self.test(place, node),
        }
    }

    fn filter(&mut self, place: Place, node: &mut FilterCall) -> Resolved {
        node.filter = filters::find(&node.name);
        if node.filter.is_none() && !place.soft {
            return Err(unknown("filter", &node.name, node.line));
        }
        if let Some(input) = &mut node.input {
            self.expr(place, input, node.line)?;
        }
        self.arguments(place, &mut node.arguments, node.line)
    }

    fn test(&mut self, place: Place, node: &mut TestCall) -> Resolved {
        node.test = tests::find(&node.name);
        if node.test.is_none() && !place.soft {
            return Err(unknown("test", &node.name, node.line));
        }
        self.expr(place, &mut node.input, node.line)?;
        self.arguments(place, &mut node.arguments, node.line)
    }

    fn arguments(&mut self, place: Place, arguments: &mut Arguments, line: u32) -> Resolved {
        let repeated =
            |(at, (name, _)): (usize, &(Box<str>, Expr))| arguments.named[..at].iter().any(|(n, _)| n == name);
        if arguments.named.iter().enumerate().any(repeated) {
            return Err(Failure::at_line("SyntaxError", line, "a keyword argument is repeated"));
        }
        self.exprs(place, &mut arguments.positional, line)?;
        arguments.named.iter_mut().try_for_each(|(_, value)| self.expr(place, value, line))?;
        [&mut arguments.star, &mut arguments.double_star]
            .into_iter()
            .flatten()
            .try_for_each(|value| self.expr(place, value, line))
    }
}

fn unknown(what: &str, name: &str, line: u32) -> Failure {
    Failure::at_line("TemplateAssertionError", line, format!("no {what} named '{name}'"))
}
