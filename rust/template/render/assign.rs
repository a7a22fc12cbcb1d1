//! Assignments: to names, to fields of namespaces, and to several of them at once.

use super::super::ast::{Expr, Target};
use super::super::failure::{raise, type_error, value_error};
use super::super::globals;
use super::super::render::Renderer;
use super::super::text::Text;
use super::super::value::Value;
use crate::{Error, Result};

impl<'a> Renderer<'a> {
    /// Assigns a value to a name, a field of a namespace, or several of them.
    #[inline]
    pub(in super::super) fn assign(&mut self, target: &'a Target, value: Value<'a>) -> Result<()> {
        match target {
            Target::Name(variable) => self.frame.set(variable.slot, value),
            Target::Field(variable, name) => {
                let Value::Namespace(fields) = self.frame.get(variable.slot) else { return Err(no_namespace()) };
                globals::check_field(name)?;
                let _old = fields.borrow_mut().set(Text::borrowed(name, None), value);
            }
            Target::Tuple(targets) => self.assign_each(targets, &value)?,
        }
        Ok(())
    }

    fn assign_each(&mut self, targets: &'a [Target], value: &Value<'a>) -> Result<()> {
        let values = self.unpack(value, targets.len())?;
        targets.iter().zip(values).try_for_each(|(target, value)| self.assign(target, value))
    }

    /// Exactly so many items of a value.
    pub(in super::super) fn unpack(&mut self, value: &Value<'a>, count: usize) -> Result<Vec<Value<'a>>> {
        if let Value::Namespace(_) | Value::Int(_) | Value::None | Value::Bool(_) | Value::Float(_) = value {
            return Err(type_error(format!("cannot unpack non-iterable {} object", value.type_name())));
        }
        let mut source = self.iterate(value)?;
        let mut values = Vec::with_capacity(count);
        while let Some(item) = self.next(&mut source)? {
            if values.len() == count {
                return Err(value_error(format!("too many values to unpack (expected {count})")));
            }
            values.push(item);
        }
        if values.len() < count {
            let message = format!("not enough values to unpack (expected {count}, got {})", values.len());
            return Err(value_error(message));
        }
        Ok(values)
    }

    /// A field can be assigned only on a namespace, which is checked before the value is computed.
    pub(super) fn check_namespaces(&self, target: &Target) -> Result<()> {
        match target {
            Target::Name(_) => Ok(()),
            Target::Field(variable, _) => {
                let namespace = self.frame.with(variable.slot, |value| matches!(value, Value::Namespace(_)));
                if namespace { Ok(()) } else { Err(no_namespace()) }
            }
            Target::Tuple(targets) => targets.iter().try_for_each(|target| self.check_namespaces(target)),
        }
    }

    pub(super) fn run_set(&mut self, target: &'a Target, value: &'a Expr, exported: bool) -> Result<()> {
        self.check_namespaces(target)?;
        let value = self.evaluate(value)?;
        self.assign(target, value)?;
        if exported {
            self.export(target);
        }
        Ok(())
    }

    pub(super) fn export(&mut self, target: &'a Target) {
        match target {
            Target::Name(variable) => {
                let value = self.frame.get(variable.slot);
                self.exported.push((&variable.name, value));
            }
            Target::Field(..) => {}
            Target::Tuple(targets) => targets.iter().for_each(|target| self.export(target)),
        }
    }
}

fn no_namespace() -> Error {
    raise("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
}
