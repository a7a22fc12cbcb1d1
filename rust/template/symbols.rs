//! Which variable a name means: the rules by which Jinja binds the names of a scope before it runs.
//!
//! A name that a scope assigns is its own from the scope's start: it begins with the value of the scope around (so an
//! assignment in a loop does not leak, and each iteration starts anew), or undefined. A name assigned only in a branch
//! begins with the value it would have without the branch. A name that no scope assigns is an argument of the rendering.

use std::collections::HashMap;

use super::ast::{Load, Slot};

/// A scope under analysis, by its place in [`Symbols`].
pub(super) type LevelId = usize;

/// A function: the template, a macro, the body of a call block, a recursive loop, a block.
pub(super) type FunctionId = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    function: FunctionId,
    index: u16,
}

#[derive(Debug, Clone, Copy)]
enum Start {
    Parameter,
    Resolve,
    Alias(Place),
    Undefined,
}

#[derive(Debug, Default)]
struct Level {
    parent: Option<LevelId>,
    function: FunctionId,
    depth: u16,
    /// Keeps the variables of a loop's condition apart from those of its body.
    space: u16,
    /// Name, place, and how the place gets its first value.
    names: Vec<(u32, Place, Start)>,
    stores: Vec<u32>,
}

#[derive(Debug)]
struct Function {
    parent: Option<FunctionId>,
    /// Scopes of the same depth share the variable of a name, as they do in the Python that Jinja writes.
    slots: HashMap<(u16, u16, u32), u16>,
}

/// The scopes of a template and the variables in them.
#[derive(Debug)]
pub(super) struct Symbols {
    names: HashMap<Box<str>, u32>,
    spelled: Vec<Box<str>>,
    /// The names that scopes load from the arguments or the globals.
    resolved: Vec<u32>,
    levels: Vec<Level>,
    functions: Vec<Function>,
    spaces: u16,
}

impl Symbols {
    /// The scope of the whole template.
    pub(super) fn new() -> Self {
        let functions = vec![Function { parent: None, slots: HashMap::new() }];
        Self {
            names: HashMap::new(),
            spelled: Vec::new(),
            resolved: Vec::new(),
            levels: vec![Level::default()],
            functions,
            spaces: 0,
        }
    }

    fn id(&mut self, name: &str) -> u32 {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.spelled.len() as u32;
        self.spelled.push(name.into());
        self.names.insert(name.into(), id);
        id
    }

    /// A scope inside `parent`, in the same function.
    pub(super) fn inner(&mut self, parent: LevelId) -> LevelId {
        let function = self.levels[parent].function;
        self.push_level(Some(parent), function)
    }

    /// A scope inside `parent` whose variables nothing else in the function shares.
    pub(super) fn apart(&mut self, parent: LevelId) -> LevelId {
        let level = self.inner(parent);
        self.spaces += 1;
        self.levels[level].space = self.spaces;
        level
    }

    /// A scope inside `parent` that is a function of its own.
    pub(super) fn function(&mut self, parent: LevelId) -> LevelId {
        let outer = self.levels[parent].function;
        self.functions.push(Function { parent: Some(outer), slots: HashMap::new() });
        self.push_level(Some(parent), self.functions.len() - 1)
    }

    /// A function without a scope around it.
    pub(super) fn isolated(&mut self) -> LevelId {
        self.functions.push(Function { parent: Some(0), slots: HashMap::new() });
        self.push_level(None, self.functions.len() - 1)
    }

    fn push_level(&mut self, parent: Option<LevelId>, function: FunctionId) -> LevelId {
        let depth = parent.map_or(0, |parent| self.levels[parent].depth + 1);
        self.levels.push(Level { parent, function, depth, ..Level::default() });
        self.levels.len() - 1
    }

    fn find(&self, level: LevelId, id: u32) -> Option<Place> {
        let mut level = Some(level);
        while let Some(at) = level {
            if let Some((_, place, _)) = self.levels[at].names.iter().find(|(known, ..)| *known == id) {
                return Some(*place);
            }
            level = self.levels[at].parent;
        }
        None
    }

    fn find_outside(&self, level: LevelId, id: u32) -> Option<Place> {
        self.levels[level].parent.and_then(|parent| self.find(parent, id))
    }

    fn owns(&self, level: LevelId, id: u32) -> bool {
        self.levels[level].names.iter().any(|(known, ..)| *known == id)
    }

    fn define(&mut self, level: LevelId, id: u32, start: Start) -> Place {
        let Level { function, depth, space, .. } = self.levels[level];
        let slots = &mut self.functions[function].slots;
        let next = slots.len() as u16;
        let index = *slots.entry((depth, space, id)).or_insert(next);
        let place = Place { function, index };
        let names = &mut self.levels[level].names;
        match names.iter_mut().find(|(known, ..)| *known == id) {
            Some(entry) => *entry = (id, place, start),
            None => names.push((id, place, start)),
        }
        place
    }

    /// The scope reads `name`.
    pub(super) fn load(&mut self, level: LevelId, name: &str) {
        let id = self.id(name);
        if self.find(level, id).is_none() {
            self.define(level, id, Start::Resolve);
        }
    }

    /// The scope assigns `name`.
    pub(super) fn store(&mut self, level: LevelId, name: &str) {
        let id = self.id(name);
        self.note_store(level, id);
        if !self.owns(level, id) {
            let start = self.find_outside(level, id).map_or(Start::Undefined, Start::Alias);
            self.define(level, id, start);
        }
    }

    fn note_store(&mut self, level: LevelId, id: u32) {
        if !self.levels[level].stores.contains(&id) {
            self.levels[level].stores.push(id);
        }
    }

    /// `name` has its value when the scope is entered.
    pub(super) fn parameter(&mut self, level: LevelId, name: &str) -> Slot {
        let id = self.id(name);
        self.note_store(level, id);
        let place = self.define(level, id, Start::Parameter);
        self.slot(level, place)
    }

    /// Call before the branches of an `if`, and give the result to [`Self::end_branches`].
    pub(super) fn begin_branches(&self, level: LevelId) -> usize {
        self.levels[level].stores.len()
    }

    /// What only branches assign starts with the value that it has without them.
    pub(super) fn end_branches(&mut self, level: LevelId, before: usize) {
        for index in before..self.levels[level].stores.len() {
            let id = self.levels[level].stores[index];
            let start = self.find_outside(level, id).map_or(Start::Resolve, Start::Alias);
            self.define(level, id, start);
        }
    }

    /// The slot of `name` as code in the scope sees it.
    pub(super) fn slot_of(&mut self, level: LevelId, name: &str) -> Option<Slot> {
        let id = self.id(name);
        let place = self.find(level, id)?;
        Some(self.slot(level, place))
    }

    fn slot(&self, level: LevelId, place: Place) -> Slot {
        let mut function = self.levels[level].function;
        let mut hops = 0;
        while function != place.function {
            let Some(parent) = self.functions[function].parent else { break };
            function = parent;
            hops += 1;
        }
        Slot { hops, index: place.index }
    }

    /// What happens when the scope is entered.
    pub(super) fn loads(&mut self, level: LevelId) -> Box<[(Slot, Load)]> {
        let mut loads = Vec::new();
        for index in 0..self.levels[level].names.len() {
            let (id, place, start) = self.levels[level].names[index];
            let load = match start {
                Start::Parameter => continue,
                Start::Resolve => Load::Resolve(self.resolved_place(id)),
                Start::Alias(outer) => Load::Alias(self.slot(level, outer)),
                Start::Undefined => Load::Undefined,
            };
            loads.push((self.slot(level, place), load));
        }
        loads.into()
    }

    fn resolved_place(&mut self, id: u32) -> u16 {
        let known = self.resolved.iter().position(|known| *known == id);
        known.unwrap_or_else(|| {
            self.resolved.push(id);
            self.resolved.len() - 1
        }) as u16
    }

    /// The names that [`Load::Resolve`] counts.
    pub(super) fn resolved(&self) -> Vec<Box<str>> {
        self.resolved.iter().map(|id| self.spelled[*id as usize].clone()).collect()
    }

    /// The names that some scope takes from the arguments of the rendering.
    pub(super) fn arguments(&self) -> Vec<Box<str>> {
        let names = self.levels.iter().flat_map(|level| &level.names);
        let mut ids: Vec<u32> =
            names.filter(|(.., start)| matches!(start, Start::Resolve)).map(|(id, ..)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.into_iter().map(|id| self.spelled[id as usize].clone()).collect()
    }

    /// The number of slots of the function that the scope is in.
    pub(super) fn slots(&self, level: LevelId) -> u16 {
        self.functions[self.levels[level].function].slots.len() as u16
    }
}
