//! What statements read and assign, in the order in which Jinja looks.

use super::super::ast::{Arguments, Expr, Macro, Part, Scope, Stmt, Target};
use super::super::symbols::{LevelId, Symbols};

impl Symbols {
    /// Notes what `body` reads and assigns in the scope `level`; scopes inside it are not entered.
    pub(super) fn analyse(&mut self, level: LevelId, body: &[Stmt]) {
        for stmt in body {
            self.analyse_statement(level, stmt);
        }
    }

    fn analyse_statement(&mut self, level: LevelId, stmt: &Stmt) {
        match stmt {
            Stmt::Output(parts) => {
                for part in parts {
                    if let Part::Expr(expr, _) = part {
                        self.analyse_expr(level, expr);
                    }
                }
            }
            Stmt::Set { target, value, .. } => {
                self.analyse_expr(level, value);
                self.stores_of(level, target);
            }
            Stmt::SetBlock { target, .. } => self.stores_of(level, target),
            Stmt::For(node) => self.analyse_expr(level, &node.iterable),
            Stmt::If { branches, otherwise } => self.analyse_branches(level, branches, otherwise),
            Stmt::Macro { variable, .. } => self.store(level, &variable.name),
            Stmt::CallBlock { call, .. } => {
                self.analyse_expr(level, &call.callee);
                each_argument(&call.arguments, &mut |expr| self.analyse_expr(level, expr));
            }
            Stmt::FilterBlock { filter, .. } => self.analyse_expr(level, filter),
            Stmt::With { targets, .. } => targets.iter().for_each(|(_, value)| self.analyse_expr(level, value)),
            Stmt::Load { template, targets, .. } => {
                self.analyse_expr(level, template);
                for target in targets {
                    self.store(level, &target.name);
                }
            }
            Stmt::Generation { .. }
            | Stmt::AutoEscape { .. }
            | Stmt::Block { .. }
            | Stmt::Break(_)
            | Stmt::Continue(_) => {}
        }
    }

    /// An `elif` is an `if` of its own inside the branches of the first.
    fn analyse_branches(&mut self, level: LevelId, branches: &[(Expr, Vec<Stmt>, u32)], otherwise: &[Stmt]) {
        let mut rest = branches.iter();
        let Some((test, body, _)) = rest.next() else { return };
        self.analyse_expr(level, test);
        let before = self.begin_branches(level);
        self.analyse(level, body);
        for (test, body, _) in rest {
            self.analyse_expr(level, test);
            self.analyse(level, body);
        }
        self.analyse(level, otherwise);
        self.end_branches(level, before);
    }

    /// Notes what an expression reads.
    pub(super) fn analyse_expr(&mut self, level: LevelId, expr: &Expr) {
        each_name(expr, &mut |name| self.load(level, name));
    }

    fn stores_of(&mut self, level: LevelId, target: &Target) {
        match target {
            Target::Name(variable) => self.store(level, &variable.name),
            Target::Field(variable, _) => self.load(level, &variable.name),
            Target::Tuple(items) => items.iter().for_each(|item| self.stores_of(level, item)),
        }
    }

    /// Makes the names of a target parameters of the scope.
    pub(super) fn parameters_of(&mut self, level: LevelId, target: &Target) {
        match target {
            Target::Name(variable) => drop(self.parameter(level, &variable.name)),
            Target::Field(variable, _) => self.load(level, &variable.name),
            Target::Tuple(items) => items.iter().for_each(|item| self.parameters_of(level, item)),
        }
    }
}

fn each_argument(arguments: &Arguments, visit: &mut impl FnMut(&Expr)) {
    arguments.positional.iter().for_each(&mut *visit);
    arguments.named.iter().for_each(|(_, value)| visit(value));
    arguments.star.iter().chain(&arguments.double_star).for_each(visit);
}

/// The expressions directly inside an expression, in Jinja's order.
fn each_child(expr: &Expr, visit: &mut impl FnMut(&Expr)) {
    match expr {
        Expr::Const(_) | Expr::Name(_) => {}
        Expr::Tuple(items) | Expr::List(items) | Expr::Concat(items) => items.iter().for_each(visit),
        Expr::And(operands) | Expr::Or(operands) | Expr::Sum(operands) => operands.iter().for_each(visit),
        Expr::Dict(entries) => entries.iter().for_each(|(key, value)| {
            visit(key);
            visit(value);
        }),
        Expr::Not(inner) | Expr::Neg(inner) | Expr::Pos(inner) => visit(inner),
        Expr::Binary(_, pair) | Expr::Item(pair) => {
            visit(&pair.0);
            visit(&pair.1);
        }
        Expr::Compare(node) => {
            visit(&node.first);
            node.rest.iter().for_each(|(_, operand)| visit(operand));
        }
        Expr::Condition(node) => {
            visit(&node.test);
            visit(&node.then);
            node.otherwise.iter().for_each(visit);
        }
        Expr::Attribute(node) => visit(&node.object),
        Expr::Slice(bounds) => bounds.iter().flatten().for_each(visit),
        Expr::Call(node) => {
            visit(&node.callee);
            each_argument(&node.arguments, visit);
        }
        Expr::Filter(node) => {
            node.input.iter().for_each(&mut *visit);
            each_argument(&node.arguments, visit);
        }
        Expr::Test(node) => {
            visit(&node.input);
            each_argument(&node.arguments, visit);
        }
    }
}

fn each_name(expr: &Expr, visit: &mut dyn FnMut(&str)) {
    match expr {
        Expr::Name(variable) => visit(&variable.name),
        expr => each_child(expr, &mut |child| each_name(child, visit)),
    }
}

/// Whether an expression reads `name`.
pub(super) fn reads_name(expr: &Expr, name: &str) -> bool {
    let mut found = false;
    each_name(expr, &mut |read| found |= read == name);
    found
}

/// Whether statements read `name` before they assign it, scopes inside them included.
pub(super) fn reads(body: &[Stmt], name: &'static str) -> bool {
    let mut search = Search { wanted: vec![name], found: Vec::new() };
    search.statements(body);
    !search.found.is_empty()
}

/// Which of a macro's special parameters its body reads.
pub(super) fn special_reads(body: &[Stmt]) -> impl Iterator<Item = &'static str> + use<> {
    let mut search = Search { wanted: vec!["caller", "kwargs", "varargs"], found: Vec::new() };
    search.statements(body);
    ["caller", "kwargs", "varargs"].into_iter().filter(move |name| search.found.contains(name))
}

/// Whether a loop assigns `name` anywhere.
pub(super) fn assigns(targets: &[Target], body: &[Stmt], otherwise: Option<&Scope>, name: &str) -> bool {
    let mut found = false;
    let mut visit = |target: &Target| found |= names_target(target, name);
    targets.iter().for_each(&mut visit);
    each_target(body, &mut visit);
    if let Some(otherwise) = otherwise {
        each_target(&otherwise.body, &mut visit);
    }
    found
}

fn names_target(target: &Target, name: &str) -> bool {
    match target {
        Target::Name(variable) => &*variable.name == name,
        Target::Field(..) => false,
        Target::Tuple(items) => items.iter().any(|item| names_target(item, name)),
    }
}

fn each_target(body: &[Stmt], visit: &mut dyn FnMut(&Target)) {
    for stmt in body {
        match stmt {
            Stmt::Set { target, .. } => visit(target),
            Stmt::SetBlock { target, scope, .. } => {
                visit(target);
                each_target(&scope.body, visit);
            }
            Stmt::For(node) => {
                visit(&node.target);
                each_target(&node.scope.body, visit);
                node.otherwise.iter().for_each(|scope| each_target(&scope.body, visit));
            }
            Stmt::If { branches, otherwise } => {
                for (_, body, _) in branches {
                    each_target(body, visit);
                }
                each_target(otherwise, visit);
            }
            Stmt::Macro { definition, .. } => each_target(&definition.scope.body, visit),
            Stmt::CallBlock { body, .. } => each_target(&body.scope.body, visit),
            Stmt::FilterBlock { scope, .. }
            | Stmt::With { scope, .. }
            | Stmt::Generation { scope, .. }
            | Stmt::AutoEscape { scope, .. } => each_target(&scope.body, visit),
            Stmt::Output(_) | Stmt::Block { .. } | Stmt::Load { .. } | Stmt::Break(_) | Stmt::Continue(_) => {}
        }
    }
}

/// A search for names that are read; a name that is assigned first is searched no more.
struct Search {
    wanted: Vec<&'static str>,
    found: Vec<&'static str>,
}

impl Search {
    fn statements(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.statement(stmt);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        each_name(expr, &mut |name| {
            if let Some(wanted) = self.wanted.iter().find(|wanted| **wanted == name) {
                self.found.push(wanted);
            }
        });
    }

    fn assigned(&mut self, name: &str) {
        self.wanted.retain(|wanted| *wanted != name);
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Name(variable) => self.assigned(&variable.name),
            Target::Field(..) => {}
            Target::Tuple(items) => items.iter().for_each(|item| self.target(item)),
        }
    }

    fn macro_(&mut self, node: &Macro) {
        node.parameters.iter().for_each(|parameter| self.assigned(&parameter.name));
        node.defaults.iter().for_each(|default| self.expr(default));
        self.statements(&node.scope.body);
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Output(parts) => parts.iter().for_each(|part| {
                if let Part::Expr(expr, _) = part {
                    self.expr(expr);
                }
            }),
            Stmt::Set { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
            Stmt::SetBlock { target, filter, scope, .. } => {
                self.target(target);
                if let Some(filter) = filter {
                    self.expr(filter);
                }
                self.statements(&scope.body);
            }
            Stmt::For(node) => {
                self.target(&node.target);
                self.expr(&node.iterable);
                self.statements(&node.scope.body);
                node.otherwise.iter().for_each(|scope| self.statements(&scope.body));
                node.test.iter().for_each(|test| self.expr(&test.test));
            }
            Stmt::If { branches, otherwise } => {
                for (test, body, _) in branches {
                    self.expr(test);
                    self.statements(body);
                }
                self.statements(otherwise);
            }
            Stmt::Macro { definition, .. } => self.macro_(definition),
            Stmt::CallBlock { body, call } => {
                self.expr(&call.callee);
                each_argument(&call.arguments, &mut |expr| self.expr(expr));
                self.macro_(body);
            }
            Stmt::FilterBlock { filter, scope, .. } => {
                self.statements(&scope.body);
                self.expr(filter);
            }
            Stmt::With { targets, scope, .. } => {
                for (target, _) in targets {
                    self.target(target);
                }
                for (_, value) in targets {
                    self.expr(value);
                }
                self.statements(&scope.body);
            }
            Stmt::Generation { scope, .. } => self.statements(&scope.body),
            Stmt::AutoEscape { enabled, scope, .. } => {
                self.expr(enabled);
                self.statements(&scope.body);
            }
            Stmt::Load { template, .. } => self.expr(template),
            Stmt::Block { .. } | Stmt::Break(_) | Stmt::Continue(_) => {}
        }
    }
}
