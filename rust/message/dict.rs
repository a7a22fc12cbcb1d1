//! A dict in insertion order.
//!
//! Messages and tool schemas have a handful of keys, and a template looks each one up by a literal name: a scan over a
//! few short texts is quicker than a hash, and a conversation is built once for each rendering. From
//! [`SCANNED`] entries on, an index keeps large dicts linear to build and quick to read.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Data, same_text, shared};

/// Up to so many entries a dict is scanned, and keeps no index.
const SCANNED: usize = 16;

/// A key of a [`Dict`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A text.
    Text(Arc<str>),
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, by its bits.
    Float(u64),
    /// `None`.
    Null,
}

impl Key {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::Text(shared(text))
    }
}

impl From<Arc<str>> for Key {
    fn from(text: Arc<str>) -> Self {
        Self::Text(text)
    }
}

/// A dict in insertion order. Keys are almost always texts; Python allows numbers, booleans and None as well.
#[derive(Debug, Clone, Default)]
pub struct Dict {
    entries: Vec<(Key, Data)>,
    index: Option<HashMap<Key, usize>>,
}

impl Dict {
    /// An empty dict.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty dict with room for `capacity` entries.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity), index: None }
    }

    /// A dict of entries, no two of which have the same key.
    pub fn from_unique(entries: Vec<(Key, Data)>) -> Self {
        let mut dict = Self { entries, index: None };
        dict.index_if_large();
        dict
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value under a text key.
    pub fn get(&self, key: &str) -> Option<&Data> {
        self.position(key).map(|position| &self.entries[position].1)
    }

    /// The value under a text key, to change in place.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Data> {
        self.position(key).map(|position| &mut self.entries[position].1)
    }

    /// The value under any key.
    pub fn get_key(&self, key: &Key) -> Option<&Data> {
        self.position_of(key).map(|position| &self.entries[position].1)
    }

    /// The place of a text key in the order of insertion.
    pub fn position(&self, key: &str) -> Option<usize> {
        match &self.index {
            None => {
                self.entries.iter().position(|(known, _)| known.as_text().is_some_and(|known| same_text(known, key)))
            }
            Some(index) => index.get(&Key::from(key)).copied(),
        }
    }

    fn position_of(&self, key: &Key) -> Option<usize> {
        match &self.index {
            None => self.entries.iter().position(|(known, _)| known == key),
            Some(index) => index.get(key).copied(),
        }
    }

    /// Whether a text key is present.
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Puts a value under a key: in the key's place if it is known (and the old value is returned), else at the end.
    pub fn insert(&mut self, key: impl Into<Key>, value: Data) -> Option<Data> {
        let key = key.into();
        if let Some(position) = self.position_of(&key) {
            Some(std::mem::replace(&mut self.entries[position].1, value))
        } else {
            self.push(key, value);
            None
        }
    }

    /// Adds an entry whose key is not in the dict yet.
    fn push(&mut self, key: Key, value: Data) {
        if let Some(index) = &mut self.index {
            index.insert(key.clone(), self.entries.len());
        }
        self.entries.push((key, value));
        self.index_if_large();
    }

    fn index_if_large(&mut self) {
        if self.index.is_none() && self.entries.len() > SCANNED {
            let places = self.entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at));
            self.index = Some(places.collect());
        }
    }

    /// The entries in order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Key, Data)> {
        self.entries.iter()
    }

    /// The entries in order, as a slice.
    pub fn entries(&self) -> &[(Key, Data)] {
        &self.entries
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The values in order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Data> {
        self.entries.iter().map(|(_, value)| value)
    }
}

impl<K: Into<Key>> FromIterator<(K, Data)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, Data)>>(entries: I) -> Self {
        let mut dict = Self::new();
        for (key, value) in entries {
            dict.insert(key, value);
        }
        dict
    }
}

impl<'a> IntoIterator for &'a Dict {
    type Item = &'a (Key, Data);
    type IntoIter = std::slice::Iter<'a, (Key, Data)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Two dicts are equal if they hold the same entries, in any order.
impl PartialEq for Dict {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get_key(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_insert_keeps_the_place() {
        let mut dict: Dict = [("a", Data::Int(1)), ("b", Data::Int(2))].into_iter().collect();
        assert_eq!(dict.insert("a", Data::Int(3)), Some(Data::Int(1)));
        assert_eq!(dict.entries()[0], (Key::from("a"), Data::Int(3)));
    }

    #[test]
    fn large_dicts_answer_as_small_ones() {
        let dict: Dict = (0..100).map(|i| (Key::from(format!("k{i}").as_str()), Data::Int(i))).collect();
        assert_eq!((dict.get("k99"), dict.get("k100")), (Some(&Data::Int(99)), None));
        assert_eq!(dict.get("k0"), Some(&Data::Int(0)));
    }
}
