//! The arguments of a call, and how functions take them.

use super::failure::type_error;
use super::number::Number;
use super::text::Text;
use super::value::Value;
use crate::Result;

/// The evaluated arguments of a call, filter or test.
#[derive(Debug, Clone, Default)]
pub(super) struct Args<'a> {
    pub(super) positional: Vec<Value<'a>>,
    pub(super) named: Vec<(Text<'a>, Value<'a>)>,
}

impl<'a> Args<'a> {
    /// Takes a keyword argument.
    pub(super) fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let position = self.named.iter().position(|(known, _)| known.as_str() == name)?;
        Some(self.named.remove(position).1)
    }

    /// The arguments in the order of `names`, the first `required` of which must be there. A name that begins with `/`
    /// is taken by position only.
    pub(super) fn bind<const N: usize>(
        self,
        function: &str,
        names: [&str; N],
        required: usize,
    ) -> Result<[Option<Value<'a>>; N]> {
        let given = self.positional.len();
        if given > N {
            return Err(type_error(format!("{function}() takes at most {N} arguments ({given} given)")));
        }
        let mut bound = [const { None }; N];
        for (place, value) in bound.iter_mut().zip(self.positional) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            let position = names.iter().position(|known| *known == name.as_str());
            let Some(position) = position else {
                return Err(type_error(format!("{function}() got an unexpected keyword argument '{}'", name.as_str())));
            };
            if bound[position].replace(value).is_some() {
                return Err(type_error(format!("{function}() got multiple values for argument '{}'", name.as_str())));
            }
        }
        if let Some(missing) = (0..required).find(|at| bound[*at].is_none()) {
            let name = names[missing].trim_start_matches('/');
            return Err(type_error(format!("{function}() missing required argument: '{name}'")));
        }
        Ok(bound)
    }

    /// No arguments at all.
    pub(super) fn none(self, function: &str) -> Result<()> {
        self.bind::<0>(function, [], 0).map(drop)
    }
}

/// A required argument that [`Args::bind`] has checked.
pub(super) fn required(argument: Option<Value<'_>>) -> Value<'_> {
    argument.unwrap_or(Value::None)
}

/// A text argument.
pub(super) fn text<'a>(function: &str, value: Value<'a>) -> Result<Text<'a>> {
    match value {
        Value::Text(text) => Ok(text),
        value => Err(type_error(format!("{function}() argument must be str, not {}", value.type_name()))),
    }
}

/// A text argument that may be left out or None.
pub(super) fn optional_text<'a>(function: &str, value: Option<Value<'a>>) -> Result<Option<Text<'a>>> {
    match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => text(function, value).map(Some),
    }
}

/// An integer argument (a boolean is one).
pub(super) fn integer(value: &Value<'_>) -> Result<i64> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::Big(number) => {
            use num_traits::Signed;
            Ok(if number.is_negative() { i64::MIN } else { i64::MAX })
        }
        _ => Err(type_error(format!("'{}' object cannot be interpreted as an integer", value.type_name()))),
    }
}

/// An integer argument with a default.
pub(super) fn integer_or(value: Option<&Value<'_>>, default: i64) -> Result<i64> {
    value.map_or(Ok(default), integer)
}

/// A number argument.
pub(super) fn number(function: &str, value: &Value<'_>) -> Result<Number> {
    Number::of(value).ok_or_else(|| type_error(format!("bad operand type for {function}(): '{}'", value.type_name())))
}

/// The truth of an argument with a default.
pub(super) fn flag(value: Option<&Value<'_>>, default: bool) -> bool {
    value.map_or(default, Value::is_true)
}
