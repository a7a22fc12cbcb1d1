//! Where statements write: into the output, or into a buffer whose text becomes a value.

use std::rc::Rc;

use super::super::frame::Frame;
use super::super::text::{Text, Writer};
use super::Renderer;
use crate::Result;

impl<'a> Renderer<'a> {
    /// Runs `work` with a buffer for its output, and returns what it wrote.
    pub(in super::super) fn in_buffer<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(Text<'a>, T)> {
        let outermost = self.written.is_none();
        if outermost {
            self.written = Some(self.out.len());
        }
        let outer = std::mem::replace(&mut self.out, Writer::for_buffer());
        self.buffered += outer.len();
        let result = work(self);
        self.buffered -= outer.len();
        let inner = std::mem::replace(&mut self.out, outer);
        if outermost {
            self.written = None;
        }
        result.map(|value| (inner.finish(), value))
    }

    /// Runs `work`, which writes into the output itself what an output statement is to write.
    pub(super) fn in_place(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let outermost = self.written.is_none();
        if outermost {
            self.written = Some(self.out.len());
        }
        let result = work(self);
        if outermost {
            self.written = None;
        }
        result
    }

    /// Runs the body of a function in its frame; what it writes goes where the call stands.
    pub(in super::super) fn in_function_here(
        &mut self,
        frame: Rc<Frame<'a>>,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = self.nested(|renderer| renderer.in_place(work));
        self.frame = outer;
        result
    }

    /// Runs the body of a function in its frame, and returns what it wrote.
    pub(in super::super) fn in_function(
        &mut self,
        frame: Rc<Frame<'a>>,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Text<'a>> {
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = self.nested(|renderer| renderer.in_buffer(work));
        self.frame = outer;
        result.map(|(text, ())| text)
    }
}
