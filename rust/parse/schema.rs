//! Declared tools: their names, and the types of their arguments.

use std::collections::HashMap;
use std::fmt::Debug;

use crate::message::{Data, Dict};

/// Which JSON types a value may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one flag for each type of JSON")]
pub(super) struct Types {
    text: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    null: bool,
    array: bool,
    object: bool,
}

impl Types {
    fn named(name: &str) -> Self {
        let mut types = Self::default();
        match name {
            "string" | "str" => types.text = true,
            "integer" | "int" => types.integer = true,
            "number" | "float" => types.number = true,
            "boolean" | "bool" => types.boolean = true,
            "null" => types.null = true,
            "array" | "list" => types.array = true,
            "object" | "dict" => types.object = true,
            _ => {}
        }
        types
    }

    fn or(self, other: Self) -> Self {
        Self {
            text: self.text | other.text,
            integer: self.integer | other.integer,
            number: self.number | other.number,
            boolean: self.boolean | other.boolean,
            null: self.null | other.null,
            array: self.array | other.array,
            object: self.object | other.object,
        }
    }

    fn of(schema: &Data) -> Self {
        let mut types = Self::default();
        match schema.get("type") {
            Some(Data::Text(name)) => types = types.or(Self::named(name)),
            Some(names) => {
                for name in names.as_items().into_iter().flatten().filter_map(Data::as_text) {
                    types = types.or(Self::named(name));
                }
            }
            None => {}
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for inner in schema.get(key).and_then(Data::as_items).into_iter().flatten() {
                types = types.or(Self::of(inner));
            }
        }
        let values = schema.get("enum").and_then(Data::as_items).into_iter().flatten().chain(schema.get("const"));
        if types == Self::default() {
            types = values.fold(types, |types, value| types.or(Self::of_value(value)));
        }
        if schema.get("nullable") == Some(&Data::Bool(true)) {
            types.null = true;
        }
        types
    }

    fn of_value(value: &Data) -> Self {
        Self::named(match value {
            Data::Null => "null",
            Data::Bool(_) => "boolean",
            Data::Int(_) | Data::BigInt(_) => "integer",
            Data::Float(_) => "number",
            Data::Text(_) => "string",
            Data::List(_) | Data::Tuple(_) => "array",
            Data::Dict(_) => "object",
        })
    }

    /// Whether nothing is known.
    fn is_open(self) -> bool {
        self == Self::default()
    }

    fn allow(self, value: &Data) -> bool {
        match value {
            Data::Null => self.null,
            Data::Bool(_) => self.boolean,
            Data::Int(_) | Data::BigInt(_) => self.integer || self.number,
            Data::Float(number) => self.number || self.integer && number.fract() == 0.0,
            Data::Text(_) => self.text,
            Data::List(_) | Data::Tuple(_) => self.array,
            Data::Dict(_) => self.object,
        }
    }
}

/// The declared arguments of one tool.
#[derive(Debug, Clone, Default)]
pub struct Tool(HashMap<String, Types>);

impl Tool {
    /// The name of a tool and its arguments, if the schema names one.
    pub fn of(schema: &Data) -> Option<(String, Self)> {
        let function = schema.get("function").unwrap_or(schema);
        let name = function.get("name")?.as_text()?.to_owned();
        let schema = function.get("parameters").or_else(|| function.get("input_schema"));
        let properties = schema.and_then(|schema| schema.get("properties")).and_then(Data::as_dict);
        Some((name, Self(properties.map(property_types).unwrap_or_default())))
    }

    /// The value of an argument that a format writes as bare text; none if the text does not fit the declared type.
    pub(super) fn typed(&self, key: &str, text: &str) -> Option<Data> {
        let types = self.0.get(key).copied().unwrap_or_default();
        if types.text {
            let null = types.null && text.trim() == "null";
            return Some(if null { Data::Null } else { Data::from(text) });
        }
        let value = super::body::literal::value(text.trim());
        if types.is_open() {
            let value = value.filter(|value| value.as_text().is_none());
            return Some(value.unwrap_or_else(|| Data::from(text)));
        }
        value.filter(|value| types.allow(value))
    }
}

/// Tools that are looked up when a call names one, so that a turn without calls reads no schema.
pub trait Declared: Debug + Send {
    /// Whether there is a tool of this name.
    fn declares(&self, name: &str) -> bool;

    /// The arguments of the tool of this name, if it is declared.
    fn tool(&self, name: &str) -> Option<Tool>;
}

/// Tools that are read already.
#[derive(Debug)]
struct Read(HashMap<String, Tool>);

impl Declared for Read {
    fn declares(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn tool(&self, name: &str) -> Option<Tool> {
        self.0.get(name).cloned()
    }
}

/// The declared tools. None at all: every name is known, and no type is.
#[derive(Debug, Default)]
pub struct Tools(Option<Box<dyn Declared>>);

impl Tools {
    /// The tools of a list of schemas, as chat templates take them; of two of one name the last counts.
    pub fn new(schemas: Option<&Data>) -> Self {
        let Some(items) = schemas.and_then(Data::as_items) else { return Self(None) };
        Self::asked(Read(items.iter().filter_map(Tool::of).collect()))
    }

    /// Tools that are looked up when they are needed.
    pub fn asked(declared: impl Declared + 'static) -> Self {
        Self(Some(Box::new(declared)))
    }

    /// Whether a tool of this name may be called.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|tools| tools.declares(name))
    }

    /// Whether a tool of this name is declared.
    pub(super) fn declares(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|tools| tools.declares(name))
    }

    /// The arguments of a tool, as far as they are declared.
    pub(super) fn tool(&self, name: &str) -> Tool {
        self.0.as_ref().and_then(|tools| tools.tool(name)).unwrap_or_default()
    }
}

fn property_types(properties: &Dict) -> HashMap<String, Types> {
    let entries = properties.iter().filter_map(|(key, schema)| Some((key.as_text()?.to_owned(), Types::of(schema))));
    entries.collect()
}
