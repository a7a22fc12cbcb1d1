//! Filters that make, use or remove HTML.

use super::super::arguments::Args;
use super::super::dump::{soft, to_text};
use super::super::escape::escaped;
use super::super::render::Renderer;
use super::super::value::Value;
use super::Call;
use crate::Result;

pub(super) fn find(name: &str) -> Option<Call> {
    Some(match name {
        "safe" => |_, value, args| {
            args.none("safe")?;
            Ok(Value::Text(soft(&value)?.with_safety(true)))
        },
        "escape" | "e" => |_, value, args| {
            args.none("escape")?;
            Ok(Value::Text(escaped(&soft(&value)?)))
        },
        "forceescape" => forceescape,
        _ => return None,
    })
}

fn forceescape<'a>(_: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    args.none("forceescape")?;
    Ok(Value::Text(escaped(&to_text(&value)?)))
}
