//! How a tokenizer comes to be: compiled and compared with the reference, or read from where that was kept.
//!
//! *Invariant*: a fast path is used only if it passed the self-check, now or when the same build compiled the same file.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::bytes::TokenBytes;
use super::compiled::Compiled;
use super::fast::Fast;
use super::file::{File, Refusal};
use super::later::{Later, Shared};
use super::pieces::Pieces;
use super::reference::Reference;
use super::store::Store;
use super::stored::Stored;
use super::{AddedToken, Engine, Tokenizer, failure, release, selfcheck};
use crate::Result;

impl Tokenizer {
    /// Reads the content of a `tokenizer.json`; or what a store kept of it, which is much quicker. What was read is kept
    /// in the store if the fast path passed its self-check.
    pub fn load(json: &Shared, store: Option<&Store>) -> Result<Self> {
        let bytes = (**json).as_ref();
        let digest = || format!("{:x}", Sha256::digest(bytes));
        let Some(store) = store else {
            let (sha256, file) = both(digest, || File::parse(bytes))?;
            return Self::compiled(json, sha256, file, None);
        };
        let sha256 = digest();
        let found = store.get(&sha256, |content| Self::restored(json, &sha256, content));
        found.map_or_else(|| Self::compiled(json, sha256, File::parse(bytes), Some(store)), Ok)
    }

    /// Compiles a `tokenizer.json`, and compares both paths.
    fn compiled(json: &Shared, sha256: String, file: Result<File<'_>, Refusal>, store: Option<&Store>) -> Result<Self> {
        let compile = || {
            let compiled = Compiled::new(file.as_ref().map_err(Clone::clone)?)?;
            let kept = store.map_or_else(Vec::new, |_| kept(&compiled));
            Ok((compiled, kept))
        };
        let (reference, compiled) = both(|| Reference::of(&file, (**json).as_ref()), compile)?;
        let (reference, (compiled, kept)) = (reference?, apart(compiled));
        let added = reference.added_tokens();
        let bytes = TokenBytes::of(&reference);
        let vocab_size = reference.vocab_size(compiled.as_ref().ok());
        let fast = compiled.and_then(|compiled| compiled.with_added(&added));
        let (fast, engine) = checked(fast, &reference, &added);
        let parsed = file.as_ref().ok().filter(|_| engine.is_fast());
        let pieces = parsed.and_then(|file| Pieces::from_file(file, &reference, &added, vocab_size, &bytes));
        let pieces = pieces.map_or_else(OnceLock::new, |pieces| Some(pieces).into());
        drop(file);
        let reference = reference.into();
        let made = Self { fast, engine, reference, vocab_size, bytes, pieces, added, sha256 };
        made.without_reference(json, kept, store)
    }

    /// Lets the reference go, which takes more memory than all else, if hardly anybody will ask for it again; then all
    /// that is left can be kept.
    fn without_reference(mut self, json: &Shared, kept: Vec<u8>, store: Option<&Store>) -> Result<Self> {
        if self.engine.is_fast() && self.pieces().is_some() {
            let reference = std::mem::replace(&mut self.reference, Later::of(json.clone()));
            let let_go = || {
                drop(reference);
                release::freed_memory();
            };
            both(let_go, || store.map(|store| self.keep(kept, store)))?;
        }
        Ok(self)
    }

    /// Keeps the compiled form and all else that needs no reference.
    fn keep(&self, mut content: Vec<u8>, store: &Store) {
        let Some(pieces) = self.pieces() else { return };
        self.added.write(&mut content);
        self.bytes.write(&mut content);
        pieces.write(&mut content);
        store.put(&self.sha256, &content);
    }

    /// The tokenizer of what [`Self::keep`] has kept.
    fn restored(json: &Shared, sha256: &str, mut content: &[u8]) -> Option<Self> {
        let (compiled, added): (Compiled, Vec<AddedToken>) = Stored::read(&mut content)?;
        let (bytes, pieces): (TokenBytes, Pieces) = Stored::read(&mut content)?;
        let fast = compiled.with_added(&added).ok().filter(|_| content.is_empty())?;
        Some(Self {
            engine: Engine::Fast(fast.name()),
            fast: Some(fast),
            reference: Later::of(json.clone()),
            vocab_size: pieces.len(),
            bytes,
            pieces: Some(pieces).into(),
            added,
            sha256: sha256.to_owned(),
        })
    }
}

/// The fast path if it exists and passes the self-check, and which path that leaves.
pub(super) fn checked(
    fast: Result<Fast, Refusal>,
    reference: &Reference,
    added: &[AddedToken],
) -> (Option<Fast>, Engine) {
    let fast = match fast {
        Ok(fast) => fast,
        Err(refusal) => return (None, Engine::Reference(refusal)),
    };
    let name = fast.name();
    match selfcheck::run(&fast, reference, added) {
        Ok(()) => (Some(fast), Engine::Fast(name)),
        Err(difference) => (None, Engine::Disagrees(difference)),
    }
}

/// The bytes of what is compiled.
fn kept(compiled: &Compiled) -> Vec<u8> {
    let mut content = Vec::new();
    compiled.write(&mut content);
    content
}

fn apart<A, B: Default, E>(both: Result<(A, B), E>) -> (Result<A, E>, B) {
    both.map_or_else(|error| (Err(error), B::default()), |(one, other)| (Ok(one), other))
}

/// The results of two functions, of which the first runs in a thread of its own: a panic of the library ends there.
fn both<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> Result<(A, B)> {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one =
            one.join().map_err(|_| failure("tokenizer.json: the tokenizers library panics when it reads this file"));
        Ok((one?, other))
    })
}
