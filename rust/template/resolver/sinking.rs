//! Assignments at the begin of a loop's body that only the branches behind them read are made in these branches.
//!
//! Several templates go over all messages to find one, and compute for each what they need of that one alone. The
//! result is the same: such a value is an integer that takes only the number of messages and the place in the loop, so it
//! cannot fail, and no condition can change it.

use super::super::ast::{BinaryOp, Const, Expr, For, Load, Slot, Stmt, Target, Tree};
use super::analysis;

/// Moves assignments in the loops of a resolved template, those inside macros and blocks aside.
pub(super) fn sink(tree: &mut Tree) {
    let messages = messages(tree);
    sink_in(&mut tree.scope.body, messages);
}

/// The variable that is the list of messages from the first statement to the last.
fn messages(tree: &Tree) -> Option<Slot> {
    let is_messages = |load: &Load| {
        matches!(load, Load::Resolve(place)
            if tree.resolved.get(usize::from(*place)).is_some_and(|name| &*name.name == "messages"))
    };
    let (slot, _) = tree.scope.loads.iter().find(|(_, load)| is_messages(load))?;
    (!analysis::assigns(&[], &tree.scope.body, None, "messages")).then_some(*slot)
}

fn sink_in(body: &mut [Stmt], messages: Option<Slot>) {
    for stmt in body {
        match stmt {
            Stmt::For(node) if !node.recursive => {
                sink_in(&mut node.scope.body, messages);
                sink_in_loop(node, messages);
            }
            Stmt::If { branches, otherwise } => {
                for (_, body, _) in branches {
                    sink_in(body, messages);
                }
                sink_in(otherwise, messages);
            }
            _ => {}
        }
    }
}

/// A body of assignments and one `if` becomes that `if`, if the conditions do not read what is assigned.
fn sink_in_loop(node: &mut For, messages: Option<Slot>) {
    let place = node.loop_slot;
    let Some((Stmt::If { branches, .. }, assignments)) = node.scope.body.split_last() else { return };
    let sinks = |stmt: &Stmt| match stmt {
        Stmt::Set { target: Target::Name(variable), value, exported: false, .. } => {
            is_sure(value, place, messages)
                && !branches.iter().any(|(test, ..)| analysis::reads_name(test, &variable.name))
        }
        _ => false,
    };
    if assignments.is_empty() || !assignments.iter().all(sinks) {
        return;
    }
    let Some(Stmt::If { branches, otherwise }) = node.scope.body.pop() else { return };
    let assignments = std::mem::take(&mut node.scope.body);
    // Each branch gives them values before it reads them.
    let assigned = |slot: &Slot| {
        assignments
            .iter()
            .any(|stmt| matches!(stmt, Stmt::Set { target: Target::Name(variable), .. } if variable.slot == *slot))
    };
    node.scope.loads = std::mem::take(&mut node.scope.loads).into_iter().filter(|(slot, _)| !assigned(slot)).collect();
    let sunk = |body: Vec<Stmt>| {
        if body.is_empty() { body } else { assignments.iter().cloned().chain(body).collect() }
    };
    let branches = branches.into_iter().map(|(test, body, line)| (test, sunk(body), line)).collect();
    node.scope.body.push(Stmt::If { branches, otherwise: sunk(otherwise) });
}

/// Whether an expression is an integer whatever the template is given.
fn is_sure(expr: &Expr, place: Option<Slot>, messages: Option<Slot>) -> bool {
    match expr {
        Expr::Const(Const::Int(number)) => number.unsigned_abs() < 1 << 32,
        Expr::Binary(BinaryOp::Sub, pair) => is_sure(&pair.0, place, messages) && is_sure(&pair.1, place, messages),
        Expr::Attribute(node) => {
            let Expr::Name(variable) = &node.object else { return false };
            matches!(&*node.name, "index" | "index0") && Some(variable.slot) == place
        }
        Expr::Filter(node) => {
            let Some(Expr::Name(variable)) = &node.input else { return false };
            node.is_length && Some(variable.slot) == messages
        }
        _ => false,
    }
}
