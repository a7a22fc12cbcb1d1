//! Calls: methods, macros, functions, recursive loops.

use std::rc::Rc;

use super::arguments::Args;
use super::ast::{Call, Expr, Macro, Slot};
use super::failure::type_error;
use super::frame::Frame;
use super::render::{Renderer, at_line};
use super::text::Text;
use super::value::{List, MacroValue, Map, Undefined, Value};
use super::{access, globals, methods};
use crate::Result;

impl<'a> Renderer<'a> {
    /// The value of a call. A method is called without becoming a value first.
    pub(super) fn call(&mut self, node: &'a Call) -> Result<Value<'a>> {
        let called = self.call_unplaced(node);
        at_line(node.line, called)
    }

    fn call_unplaced(&mut self, node: &'a Call) -> Result<Value<'a>> {
        if let Expr::Attribute(attribute) = &node.callee {
            let object = self.evaluate(&attribute.object)?;
            let method = match object {
                Value::Text(_) => attribute.on_text,
                _ => access::callable_method(&object, &attribute.name),
            };
            if let Some(method) = method {
                let args = self.evaluate_arguments(&node.arguments)?;
                return methods::call(self, &object, method, args);
            }
            let callee = self.attribute_of(&object, &attribute.name)?;
            let args = self.evaluate_arguments(&node.arguments)?;
            return self.call_value(&callee, args);
        }
        let callee = self.evaluate(&node.callee)?;
        let args = self.evaluate_arguments(&node.arguments)?;
        self.call_value(&callee, args)
    }

    /// Calls a value.
    pub(super) fn call_value(&mut self, callee: &Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
        match callee {
            Value::Undefined(undefined) => Err(undefined.error()),
            Value::Macro(value) => self.call_macro(value, args).map(Value::Text),
            Value::Method(method) => methods::call(self, &method.0, method.1, args),
            Value::Function(function) => globals::call(self, *function, args),
            Value::Joiner(joiner) => {
                args.none("joiner")?;
                let separator = if joiner.1.replace(true) { joiner.0.clone() } else { Text::borrowed("", None) };
                Ok(Value::Text(separator))
            }
            Value::Loop(state) => {
                let [iterable] = args.bind("loop", ["iterable"], 1)?;
                let Some((node, outer)) = &state.recursive else {
                    return Err(type_error("the loop must have the 'recursive' marker to be called recursively"));
                };
                let iterable = iterable.unwrap_or(Value::None);
                self.recurse(node, outer.clone(), &iterable, state.depth()).map(Value::Text)
            }
            Value::Block(index) => {
                args.none("block")?;
                self.call_block(*index).map(Value::Text)
            }
            callee => Err(type_error(format!("'{}' object is not callable", callee.type_name()))),
        }
    }

    /// A macro with the variables around it.
    pub(super) fn macro_value(&self, definition: &'a Macro) -> Value<'a> {
        Value::Macro(Rc::new(MacroValue { definition, frame: self.frame.clone() }))
    }

    /// `{% call %}`: the call gets its body as `caller`, and its result is written.
    pub(super) fn run_call_block(&mut self, body: &'a Macro, call: &'a Call) -> Result<()> {
        let block = self.macro_value(body);
        let called = self.evaluate(&call.callee)?;
        let mut args = self.evaluate_arguments(&call.arguments)?;
        if args.named.iter().any(|(name, _)| name.as_str() == "caller") {
            return Err(type_error("got multiple values for keyword argument 'caller'"));
        }
        args.named.push((Text::borrowed("caller", None), block));
        let value = self.call_value(&called, args)?;
        self.write_value(&value)
    }

    /// What a macro writes.
    fn call_macro(&mut self, value: &MacroValue<'a>, args: Args<'a>) -> Result<Text<'a>> {
        let frame = macro_frame(value, args)?;
        let safe = self.autoescape();
        let text = self.in_function(frame, |renderer| renderer.run_macro_body(value.definition))?;
        Ok(text.with_safety(safe))
    }

    /// The macro that a call calls by its name.
    pub(super) fn called_macro(&self, node: &'a Call) -> Option<Rc<MacroValue<'a>>> {
        let Expr::Name(variable) = &node.callee else { return None };
        self.frame.with(variable.slot, |value| match value {
            Value::Macro(called) => Some(called.clone()),
            _ => None,
        })
    }

    /// Calls a macro whose text is written where the call stands. The message in hand is the same in the macro as
    /// around it, or an inner one, so that its text gets the authors that writing it afterwards would give it.
    pub(super) fn write_macro(&mut self, value: &MacroValue<'a>, args: Args<'a>) -> Result<()> {
        let frame = macro_frame(value, args)?;
        self.in_function_here(frame, |renderer| renderer.run_macro_body(value.definition))
    }

    fn run_macro_body(&mut self, definition: &'a Macro) -> Result<()> {
        self.enter(&definition.scope.loads);
        self.fill_defaults(definition)?;
        self.run_body(&definition.scope.body).map(drop)
    }

    /// Parameters without an argument take their defaults, in order: a later default may use an earlier parameter.
    fn fill_defaults(&mut self, definition: &'a Macro) -> Result<()> {
        let without = definition.parameters.len() - definition.defaults.len();
        for (index, parameter) in definition.parameters.iter().enumerate() {
            if !matches!(self.frame.get(parameter.slot), Value::Missing) {
                continue;
            }
            let value =
                if let Some(default) = index.checked_sub(without).and_then(|index| definition.defaults.get(index)) {
                    self.evaluate(default)?
                } else {
                    let hint = format!("parameter '{}' was not provided", parameter.name);
                    Value::Undefined(Undefined::Hint(hint.into()))
                };
            self.frame.set(parameter.slot, value);
        }
        Ok(())
    }
}

/// The variables of a call of a macro.
fn macro_frame<'a>(value: &MacroValue<'a>, args: Args<'a>) -> Result<Rc<Frame<'a>>> {
    let frame = Frame::new(value.definition.slots, Some(value.frame.clone()));
    bind_parameters(value.definition, &frame, args)?;
    Ok(frame)
}

/// Gives a macro's parameters their arguments, and `caller`, `kwargs` and `varargs` what is left.
fn bind_parameters<'a>(definition: &Macro, frame: &Frame<'a>, mut args: Args<'a>) -> Result<()> {
    let count = definition.parameters.len();
    let extra = args.positional.split_off(count.min(args.positional.len()));
    let given = args.positional.len();
    for (parameter, value) in definition.parameters.iter().zip(std::mem::take(&mut args.positional)) {
        frame.set(parameter.slot, value);
    }
    for parameter in &definition.parameters[given..] {
        if let Some(value) = args.take(&parameter.name) {
            frame.set(parameter.slot, value);
        }
    }
    bind_caller(definition, frame, &mut args);
    bind_kwargs(definition, frame, args)?;
    match definition.varargs {
        Some(slot) => frame.set(slot, Value::Tuple(List::new(extra))),
        None if extra.is_empty() => {}
        None => {
            let message = format!("macro '{}' takes not more than {count} argument(s)", definition.name);
            return Err(type_error(message));
        }
    }
    Ok(())
}

fn bind_caller<'a>(definition: &Macro, frame: &Frame<'a>, args: &mut Args<'a>) {
    let Some(slot) = definition.caller else { return };
    let caller = args.take("caller").filter(|caller| !matches!(caller, Value::None));
    frame.set(slot, caller.unwrap_or_else(|| Value::Undefined(Undefined::Hint("No caller defined".into()))));
}

fn bind_kwargs<'a>(definition: &Macro, frame: &Frame<'a>, args: Args<'a>) -> Result<()> {
    let slot: Option<Slot> = definition.kwargs;
    if let Some(slot) = slot {
        let entries = args.named.into_iter().map(|(name, value)| (Value::Text(name), value));
        frame.set(slot, Value::Dict(Map::build(entries)?));
        return Ok(());
    }
    match args.named.first() {
        None => Ok(()),
        Some((name, _)) if name.as_str() == "caller" => Err(type_error(format!(
            "macro '{}' was invoked with two values for the special caller argument",
            definition.name
        ))),
        Some((name, _)) => {
            Err(type_error(format!("macro '{}' takes no keyword argument '{}'", definition.name, name.as_str())))
        }
    }
}
