//! Python's two ways of formatting: `template % values` and `template.format(…)`.

mod braces;
mod percent;
mod spec;

pub(super) use braces::braces;
pub(super) use percent::percent;
pub(super) use spec::fixed;
