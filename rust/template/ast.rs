//! The tree of a template. The parser makes it, the resolver gives every name its slot, the renderer walks it.

use std::sync::Arc;

use super::filters::Filter;
use super::loops::LoopProperty;
use super::methods::Method;
use super::names::FreeName;
use super::tests::Test;

/// A variable: its name, and where its value is kept once the resolver has been over the tree.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub(super) name: Box<str>,
    pub(super) slot: Slot,
}

impl Variable {
    pub(super) fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into(), slot: Slot::default() }
    }
}

/// A place of a variable: in the running function, or in the one `hops` functions around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) hops: u16,
    pub(super) index: u16,
}

/// A constant of the template.
#[derive(Debug, Clone)]
pub(super) enum Const {
    None,
    Bool(bool),
    Int(i64),
    /// Decimal digits of an integer beyond 64 bits.
    Big(Box<str>),
    Float(f64),
    Text(Arc<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// An expression.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    Const(Const),
    Name(Variable),
    Tuple(Box<[Self]>),
    List(Box<[Self]>),
    Dict(Box<[(Self, Self)]>),
    Not(Box<Self>),
    Neg(Box<Self>),
    Pos(Box<Self>),
    /// Two or more operands with `and` between them.
    And(Vec<Self>),
    /// Two or more operands with `or` between them.
    Or(Vec<Self>),
    Binary(BinaryOp, Box<(Self, Self)>),
    /// Two or more operands with `+` between them.
    Sum(Vec<Self>),
    Concat(Box<[Self]>),
    Compare(Box<Comparison>),
    Condition(Box<Condition>),
    Attribute(Box<Attribute>),
    Item(Box<(Self, Self)>),
    Slice(Box<[Option<Self>; 3]>),
    Call(Box<Call>),
    Filter(Box<FilterCall>),
    Test(Box<TestCall>),
}

impl Expr {
    /// Variable and key of `name.key` and `name['key']`, where that means nothing else if the variable is a dict with this
    /// key.
    pub(super) fn as_field(&self) -> Option<(&Variable, &str)> {
        let (object, key) = match self {
            Self::Attribute(node) if node.only_key => (&node.object, &node.name),
            Self::Item(pair) => match &**pair {
                (object, Self::Const(Const::Text(key))) => (object, key),
                _ => return None,
            },
            _ => return None,
        };
        match object {
            Self::Name(variable) => Some((variable, key)),
            _ => None,
        }
    }
}

/// A chain of comparisons: `first < second <= third`.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    pub(super) first: Expr,
    pub(super) rest: Box<[(CompareOp, Expr)]>,
}

/// `then if test else otherwise`.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) test: Expr,
    pub(super) then: Expr,
    pub(super) otherwise: Option<Expr>,
    pub(super) line: u32,
}

/// `object.name`.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub(super) object: Expr,
    pub(super) name: Arc<str>,
    /// Whether the name means nothing but a key on a dict: no method, nothing that the sandbox hides.
    pub(super) only_key: bool,
    /// The method of this name that texts have.
    pub(super) on_text: Option<Method>,
    /// What it is of a loop, if that needs no further item.
    pub(super) on_loop: Option<LoopProperty>,
}

/// The arguments of a call, filter or test.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    pub(super) positional: Vec<Expr>,
    pub(super) named: Vec<(Box<str>, Expr)>,
    pub(super) star: Option<Expr>,
    pub(super) double_star: Option<Expr>,
}

impl Arguments {
    pub(super) fn is_empty(&self) -> bool {
        self.positional.is_empty() && self.named.is_empty() && self.star.is_none() && self.double_star.is_none()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) callee: Expr,
    pub(super) arguments: Arguments,
    pub(super) line: u32,
}

/// `input|name(arguments)`; a filter block has no input.
#[derive(Debug, Clone)]
pub(super) struct FilterCall {
    pub(super) input: Option<Expr>,
    pub(super) name: Box<str>,
    /// `None` for an unknown filter, which is an error only when it is reached.
    pub(super) filter: Option<Filter>,
    /// `input|length` or `input|count`.
    pub(super) is_length: bool,
    pub(super) arguments: Arguments,
    pub(super) line: u32,
}

/// `input is name(arguments)`.
#[derive(Debug, Clone)]
pub(super) struct TestCall {
    pub(super) input: Expr,
    pub(super) name: Box<str>,
    pub(super) test: Option<Test>,
    pub(super) arguments: Arguments,
    pub(super) line: u32,
}

/// What an assignment writes to.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Name(Variable),
    Tuple(Box<[Self]>),
    /// `namespace.name`.
    Field(Variable, Box<str>),
}

/// How a variable gets its value when its scope is entered.
#[derive(Debug, Clone)]
pub(super) enum Load {
    /// From the arguments of the rendering, or the globals: the place of the name in [`Tree::resolved`].
    Resolve(u16),
    /// From the variable of the scope around.
    Alias(Slot),
    /// It has none yet.
    Undefined,
}

/// Statements with variables of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) loads: Box<[(Slot, Load)]>,
    pub(super) body: Vec<Stmt>,
}

impl Scope {
    pub(super) fn new(body: Vec<Stmt>) -> Self {
        Self { loads: Box::default(), body }
    }
}

/// A macro, or the body of a call block.
#[derive(Debug, Clone)]
pub(super) struct Macro {
    /// Empty for the body of a call block.
    pub(super) name: Box<str>,
    pub(super) parameters: Vec<Variable>,
    /// Of the last parameters.
    pub(super) defaults: Vec<Expr>,
    pub(super) scope: Scope,
    /// The number of slots that a call needs.
    pub(super) slots: u16,
    pub(super) caller: Option<Slot>,
    pub(super) kwargs: Option<Slot>,
    pub(super) varargs: Option<Slot>,
    pub(super) line: u32,
}

/// A loop.
#[derive(Debug, Clone)]
pub(super) struct For {
    pub(super) target: Target,
    pub(super) iterable: Expr,
    pub(super) test: Option<LoopTest>,
    pub(super) recursive: bool,
    /// It stands outside every scope, and takes each item as it comes.
    pub(super) top: bool,
    /// Where `loop` is kept, if the body reads it.
    pub(super) loop_slot: Option<Slot>,
    pub(super) scope: Scope,
    pub(super) otherwise: Option<Scope>,
    /// The number of slots that a recursive loop, which is a function, needs.
    pub(super) slots: u16,
    pub(super) line: u32,
}

/// The condition of a loop, with variables of its own.
#[derive(Debug, Clone)]
pub(super) struct LoopTest {
    pub(super) target: Target,
    pub(super) loads: Box<[(Slot, Load)]>,
    pub(super) test: Expr,
}

/// A piece of an output statement.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(Box<str>),
    Expr(Expr, u32),
}

/// A statement.
#[derive(Debug, Clone)]
pub(super) enum Stmt {
    Output(Vec<Part>),
    Set {
        target: Target,
        value: Expr,
        line: u32,
        exported: bool,
    },
    SetBlock {
        target: Target,
        filter: Option<Expr>,
        scope: Scope,
        line: u32,
        exported: bool,
    },
    For(Box<For>),
    If {
        branches: Vec<(Expr, Vec<Self>, u32)>,
        otherwise: Vec<Self>,
    },
    Macro {
        variable: Variable,
        definition: Box<Macro>,
        exported: bool,
    },
    CallBlock {
        body: Box<Macro>,
        call: Call,
    },
    FilterBlock {
        filter: Expr,
        scope: Scope,
        line: u32,
    },
    With {
        targets: Vec<(Target, Expr)>,
        scope: Scope,
        line: u32,
    },
    /// `{% generation %}`; the slot is that of a `caller` that the body reads.
    Generation {
        scope: Scope,
        unset: Vec<Slot>,
    },
    /// `{% autoescape %}`.
    AutoEscape {
        enabled: Expr,
        scope: Scope,
        line: u32,
    },
    Block {
        name: Box<str>,
        index: usize,
        required: bool,
        line: u32,
    },
    /// `include`, `import`, `from` and `extends`: there is nothing to load from.
    Load {
        template: Expr,
        targets: Vec<Variable>,
        line: u32,
    },
    Break(u32),
    Continue(u32),
}

/// A `{% block %}`: rendered where it stands, and again by `self.name()`.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) name: Box<str>,
    pub(super) scope: Scope,
    pub(super) slots: u16,
    /// Where `self` is kept, if the block reads it.
    pub(super) self_slot: Option<Slot>,
}

/// A whole template.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    pub(super) scope: Scope,
    pub(super) slots: u16,
    pub(super) blocks: Vec<Block>,
    /// The names that the template takes from the arguments of the rendering.
    pub(super) arguments: Vec<Box<str>>,
    /// The names that scopes load, in the order of [`Load::Resolve`].
    pub(super) resolved: Vec<FreeName>,
    /// Where `self` is kept, if the template reads it.
    pub(super) self_slot: Option<Slot>,
}
