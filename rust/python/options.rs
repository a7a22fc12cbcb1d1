//! The keyword arguments of `render`, from Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::convert;
use super::error::to_python;
use super::rendered::choice;
use crate::Error;
use crate::message::{Conversation, Data};
use crate::render::{ControlTokens, RenderSettings, Seams};
use crate::template::{Clock, ContinueFinalMessage, RenderOptions};

/// The keyword arguments of `render`.
pub(super) struct Options<'py> {
    pub(super) settings: RenderSettings,
    tools: Option<Bound<'py, PyAny>>,
    documents: Option<Bound<'py, PyAny>>,
    arguments: Vec<(Arc<str>, Data)>,
}

impl<'py> Options<'py> {
    pub(super) fn read(
        py: Python<'py>,
        given: Option<&Bound<'py, PyDict>>,
        settings: RenderSettings,
    ) -> PyResult<Self> {
        let mut options = Self { settings, tools: None, documents: None, arguments: Vec::new() };
        for (name, value) in given.into_iter().flatten() {
            options.set(py, name.extract()?, value)?;
        }
        Ok(options)
    }

    /// The options of a template without a tokenizer: what else `Chat.render` takes is a variable of the template.
    pub(super) fn read_template(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let mut options = Self::read(py, None, RenderSettings::default())?;
        for (name, value) in given.into_iter().flatten() {
            match name.extract()? {
                name @ ("control_tokens" | "trusted_roles" | "seams" | "chat_template") => {
                    options.argument(name, &value, true)?;
                }
                name => options.set(py, name, value)?,
            }
        }
        Ok(options)
    }

    /// The same, with the arguments of nearly every call, which Python hands over one by one.
    pub(super) fn with(
        mut self,
        tools: Option<Bound<'py, PyAny>>,
        documents: Option<Bound<'py, PyAny>>,
        add_generation_prompt: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        self.tools = tools;
        self.documents = documents;
        self.settings.options.add_generation_prompt =
            add_generation_prompt.map_or(Ok(false), PyAnyMethods::is_truthy)?;
        Ok(self)
    }

    /// What of the options concerns the template.
    pub(super) fn template_options(&self) -> &RenderOptions {
        &self.settings.options
    }

    fn set(&mut self, py: Python<'py>, name: &str, value: Bound<'py, PyAny>) -> PyResult<()> {
        let settings = &mut self.settings;
        match name {
            "tools" => self.tools = Some(value).filter(|value| !value.is_none()),
            "documents" => self.documents = Some(value).filter(|value| !value.is_none()),
            "add_generation_prompt" => settings.options.add_generation_prompt = value.is_truthy()?,
            "continue_final_message" => settings.options.continue_final_message = continued(&value)?,
            "now" => settings.options.now = clock(&value)?.or(settings.options.now),
            "control_tokens" => {
                let known = [("all", ControlTokens::All), ("template", ControlTokens::Template)];
                settings.control_tokens = choice(py, name, value.extract()?, &known)?;
            }
            "trusted_roles" => settings.trusted_roles = names(&value)?,
            "seams" => {
                let known = [("parity", Seams::Parity), ("rollout", Seams::Rollout)];
                settings.seams = choice(py, name, value.extract()?, &known)?;
            }
            "chat_template" => settings.template = value.extract::<Option<String>>()?.map(Arc::from),
            "template_kwargs" => {
                for (name, value) in value.extract::<Option<Bound<'py, PyDict>>>()?.into_iter().flatten() {
                    self.argument(name.extract()?, &value, false)?;
                }
            }
            _ => self.argument(name, &value, true)?,
        }
        Ok(())
    }

    /// Adds a template argument; one given by name goes before one in `template_kwargs`.
    fn argument(&mut self, name: &str, value: &Bound<'py, PyAny>, by_name: bool) -> PyResult<()> {
        let value = convert::data(value)?;
        match self.arguments.iter_mut().find(|(known, _)| **known == *name) {
            Some(known) if by_name => known.1 = value,
            Some(_) => {}
            None => self.arguments.push((name.into(), value)),
        }
        Ok(())
    }

    pub(super) fn conversation(&self, messages: &Bound<'py, PyAny>) -> PyResult<Conversation> {
        convert::conversation(messages, self.tools.as_ref(), self.documents.as_ref(), self.arguments.clone())
    }
}

/// True: the content is left open; a text: the field of that name.
fn continued(value: &Bound<'_, PyAny>) -> PyResult<ContinueFinalMessage> {
    if let Ok(field) = value.extract::<String>() {
        return Ok(ContinueFinalMessage::Field(field.into()));
    }
    Ok(if value.is_truthy()? { ContinueFinalMessage::Content } else { ContinueFinalMessage::No })
}

/// The fields of a `datetime`, as they are.
pub(super) fn clock(value: &Bound<'_, PyAny>) -> PyResult<Option<Clock>> {
    if value.is_none() {
        return Ok(None);
    }
    let field = |name: &str| value.getattr(name)?.extract::<u32>();
    let clock = (|| {
        Ok(Clock {
            year: field("year")? as i32,
            month: field("month")?,
            day: field("day")?,
            hour: field("hour")?,
            minute: field("minute")?,
            second: field("second")?,
            microsecond: field("microsecond")?,
        })
    })();
    clock.map(Some).map_err(|_: PyErr| {
        let given = value.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string());
        to_python(
            value.py(),
            &Error::value(format!("now is a {given}: give a datetime.datetime, or None for the local time")),
        )
    })
}

fn names(value: &Bound<'_, PyAny>) -> PyResult<Arc<[Arc<str>]>> {
    if value.is_instance_of::<PyString>() {
        return Err(to_python(value.py(), &Error::value("trusted_roles is a text: give a sequence of role names")));
    }
    value.try_iter()?.map(|name| Ok(Arc::from(name?.extract::<String>()?))).collect()
}

pub(super) fn named_data(tokens: &Bound<'_, PyDict>) -> PyResult<Vec<(Arc<str>, Data)>> {
    tokens.iter().map(|(name, value)| Ok((Arc::from(name.extract::<String>()?), convert::data(&value)?))).collect()
}
