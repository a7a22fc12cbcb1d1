//! The variables of a running function.

use std::cell::RefCell;
use std::rc::Rc;

use super::ast::Slot;
use super::value::Value;

/// The slots of one call of a function, and the function around it.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    slots: RefCell<Vec<Value<'a>>>,
    parent: Option<Rc<Self>>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(slots: u16, parent: Option<Rc<Self>>) -> Rc<Self> {
        let slots = std::iter::repeat_with(|| Value::Missing).take(slots as usize).collect();
        Rc::new(Self { slots: RefCell::new(slots), parent })
    }

    #[inline]
    fn at(&self, hops: u16) -> &Self {
        let mut frame = self;
        for _ in 0..hops {
            frame = frame.parent.as_deref().unwrap_or(frame);
        }
        frame
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Value<'a> {
        let frame = self.at(slot.hops);
        frame.slots.borrow().get(slot.index as usize).cloned().unwrap_or(Value::Missing)
    }

    /// Looks at a value where it is.
    #[inline]
    pub(super) fn with<T>(&self, slot: Slot, look: impl FnOnce(&Value<'a>) -> T) -> T {
        let slots = self.at(slot.hops).slots.borrow();
        match slots.get(slot.index as usize) {
            Some(value) => look(value),
            None => look(&Value::Missing),
        }
    }

    #[inline]
    pub(super) fn set(&self, slot: Slot, value: Value<'a>) {
        let mut slots = self.at(slot.hops).slots.borrow_mut();
        // The old value is dropped in the borrow: no value looks at a frame when it goes.
        if let Some(place) = slots.get_mut(slot.index as usize) {
            *place = value;
        }
    }

    /// Takes the values of some variables away.
    pub(super) fn unset(&self, taken: impl Iterator<Item = Slot>) {
        let mut slots = self.slots.borrow_mut();
        for slot in taken {
            if slot.hops == 0
                && let Some(place) = slots.get_mut(slot.index as usize)
            {
                *place = Value::Missing;
            }
        }
    }

    /// Forgets all values, so that values that hold their own frame are freed.
    pub(super) fn clear(&self) {
        let _old = std::mem::take(&mut *self.slots.borrow_mut());
    }
}
