//! Dicts: those of the conversation, messages, and those that a template builds.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};
use num_bigint::BigInt;

use super::super::compare::hash_key;
use super::super::number::Number;
use super::super::text::Mark;
use super::Value;
use super::list::Reads;
use crate::Result;
use crate::author::{Author, Field};
use crate::message::{Data, Dict, Key, same_text};

/// The names of the message fields that a rendering has read, in the order of their numbers.
#[derive(Debug, Default)]
pub(in super::super) struct Fields(RefCell<Vec<Arc<str>>>);

impl Fields {
    /// The number of a field name. Beyond 65,534 names all share the last number.
    fn number(&self, name: &Arc<str>) -> Field {
        let mut names = self.0.borrow_mut();
        // The texts of common names are shared, so their addresses mostly tell.
        let shared = names.iter().position(|known| Arc::ptr_eq(known, name));
        let known = shared.or_else(|| names.iter().position(|known| known == name));
        let position = known.unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        });
        Field(u16::try_from(position).unwrap_or(u16::MAX).min(u16::MAX - 1))
    }

    /// Takes all names.
    pub(in super::super) fn names(&self) -> Vec<Arc<str>> {
        self.0.take()
    }

    /// How many names there are.
    pub(in super::super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Goes on with the names of another rendering, if that one began with the names that are here.
    pub(in super::super) fn go_on_with(&self, names: &[Arc<str>]) -> bool {
        let mut own = self.0.borrow_mut();
        let begins = names.starts_with(&own);
        if begins {
            let known = own.len();
            own.extend_from_slice(&names[known..]);
        }
        begins
    }
}

/// A message of the conversation, which knows its index.
#[derive(Debug)]
pub(in super::super) struct Message<'a> {
    pub(in super::super) dict: &'a Dict,
    pub(in super::super) index: u32,
    pub(in super::super) fields: &'a Fields,
    pub(in super::super) reads: &'a Reads,
}

impl<'a> Message<'a> {
    /// The author of the value (and of the name) of a field.
    fn author(&self, name: &Key) -> Mark {
        let Key::Text(name) = name else { return None };
        Some(Author::Value(self.index, self.fields.number(name)))
    }

    fn entry(&self, entry: &'a (Key, Data)) -> (Value<'a>, Value<'a>) {
        let author = self.author(&entry.0);
        (Value::from_key(&entry.0, author), Value::from_data(&entry.1, author))
    }
}

/// A key as Python compares keys: `1`, `1.0` and `True` are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum HashKey {
    Text(Rc<str>),
    Int(i64),
    Big(Rc<BigInt>),
    Float(u64),
    None,
    Undefined,
    Tuple(Rc<[Self]>),
    /// Anything that is equal only to itself, by its address.
    Identity(usize),
}

impl Hash for HashKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => text.hash(state),
            Self::Int(number) => number.hash(state),
            Self::Big(number) => number.hash(state),
            Self::Float(bits) => bits.hash(state),
            Self::None | Self::Undefined => {}
            Self::Tuple(items) => items.hash(state),
            Self::Identity(address) => address.hash(state),
        }
    }
}

/// A text key that is only looked up.
struct TextKey<'t>(&'t str);

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<HashKey> for TextKey<'_> {
    fn equivalent(&self, key: &HashKey) -> bool {
        matches!(key, HashKey::Text(text) if **text == *self.0)
    }
}

/// The entries of a dict that the template builds.
pub(in super::super) type Entries<'a> = IndexMap<HashKey, (Value<'a>, Value<'a>)>;

/// A dict.
#[derive(Debug, Clone)]
pub(in super::super) enum Map<'a> {
    /// Inside a field, tools or documents, or a plain argument of the template (no author).
    Data(&'a Dict, Mark),
    Message(&'a Message<'a>),
    Built(Rc<Entries<'a>>),
}

impl<'a> Map<'a> {
    /// A dict of the template; a repeated key keeps its first place and takes its last value.
    pub(in super::super) fn build(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Result<Self> {
        let mut built = Entries::new();
        for (key, value) in entries {
            insert(&mut built, key, value)?;
        }
        Ok(Self::Built(Rc::new(built)))
    }

    pub(in super::super) fn len(&self) -> usize {
        match self {
            Self::Data(dict, _) => dict.len(),
            Self::Message(message) => message.dict.len(),
            Self::Built(entries) => entries.len(),
        }
    }

    pub(in super::super) fn owner(&self) -> Mark {
        match self {
            Self::Data(_, owner) => *owner,
            Self::Message(_) | Self::Built(_) => None,
        }
    }

    /// The value under a text key.
    pub(in super::super) fn get_text(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Data(dict, owner) => dict.get(key).map(|value| Value::from_data(value, *owner)),
            Self::Message(message) => {
                let position = message.dict.position(key)?;
                let (key, value) = &message.dict.entries()[position];
                Some(Value::from_data(value, message.author(key)))
            }
            Self::Built(entries) => entries.get(&TextKey(key)).map(|(_, value)| value.clone()),
        }
    }

    /// The value under a text key, without its author.
    pub(in super::super) fn look(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Self::Data(dict, _) => dict.get(key).map(|value| Value::from_data(value, None)),
            Self::Message(message) => message.dict.get(key).map(|value| Value::from_data(value, None)),
            Self::Built(entries) => entries.get(&TextKey(key)).map(|(_, value)| value.clone()),
        }
    }

    /// The text under a text key, with its author, where the conversation holds this dict and a text stands there.
    pub(in super::super) fn get_str(&self, key: &str) -> Option<(&'a str, Mark)> {
        match self {
            Self::Data(dict, owner) => Some((dict.get(key)?.as_text()?, *owner)),
            Self::Message(message) => {
                let (key, value) = &message.dict.entries()[message.dict.position(key)?];
                let text = value.as_text()?;
                Some((text, message.author(key)))
            }
            Self::Built(_) => None,
        }
    }

    /// Whether a text stands under a text key; `None` where nothing stands there.
    pub(in super::super) fn is_text(&self, key: &str, text: &str) -> Option<bool> {
        let dict = match self {
            Self::Data(dict, _) => dict,
            Self::Message(message) => message.dict,
            Self::Built(entries) => {
                return entries.get(&TextKey(key)).map(|(_, value)| value.as_str() == Some(text));
            }
        };
        dict.get(key).map(|value| value.as_text().is_some_and(|known| same_text(known, text)))
    }

    /// The value under any key, or an error for what cannot be a key.
    pub(in super::super) fn get(&self, key: &Value<'_>) -> Result<Option<Value<'a>>> {
        if let Some(text) = key.as_str() {
            return Ok(self.get_text(text));
        }
        let wanted = hash_key(key)?;
        match self {
            Self::Built(entries) => Ok(entries.get(&wanted).map(|(_, value)| value.clone())),
            _ => Ok(self.find(key, &wanted)),
        }
    }

    /// A scan for a key that is no text.
    fn find(&self, key: &Value<'_>, wanted: &HashKey) -> Option<Value<'a>> {
        Number::of(key).is_some().then_some(()).or_else(|| (*wanted == HashKey::None).then_some(()))?;
        self.entries().find(|(known, _)| hash_key(known).is_ok_and(|known| known == *wanted)).map(|(_, value)| value)
    }

    /// The entry at a place in the order of insertion.
    pub(in super::super) fn entry(&self, index: usize) -> Option<(Value<'a>, Value<'a>)> {
        match self {
            Self::Data(dict, owner) => {
                let (key, value) = dict.entries().get(index)?;
                Some((Value::from_key(key, *owner), Value::from_data(value, *owner)))
            }
            Self::Message(message) => message.dict.entries().get(index).map(|entry| message.entry(entry)),
            Self::Built(entries) => entries.get_index(index).map(|(_, entry)| entry.clone()),
        }
    }

    pub(in super::super) fn entries(&self) -> impl DoubleEndedIterator<Item = (Value<'a>, Value<'a>)> + '_ {
        (0..self.len()).filter_map(|index| self.entry(index))
    }

    pub(in super::super) fn keys(&self) -> impl DoubleEndedIterator<Item = Value<'a>> + '_ {
        self.entries().map(|(key, _)| key)
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Built(a), Self::Built(b)) => Rc::ptr_eq(a, b),
            _ => self.dict().zip(other.dict()).is_some_and(|(a, b)| std::ptr::eq(a, b)),
        }
    }

    fn dict(&self) -> Option<&'a Dict> {
        match self {
            Self::Data(dict, _) => Some(dict),
            Self::Message(message) => Some(message.dict),
            Self::Built(_) => None,
        }
    }
}

/// Puts an entry into a dict that is being built: a known key stays as it is and takes the value.
pub(in super::super) fn insert<'a>(entries: &mut Entries<'a>, key: Value<'a>, value: Value<'a>) -> Result<()> {
    match entries.entry(hash_key(&key)?) {
        indexmap::map::Entry::Occupied(mut entry) => entry.get_mut().1 = value,
        indexmap::map::Entry::Vacant(entry) => drop(entry.insert((key, value))),
    }
    Ok(())
}
