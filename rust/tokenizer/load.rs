//! How a tokenizer comes to be: compiled and compared with the reference, or read from where that was kept.
//!
//! *Invariant*: a fast path is used only if it passed the self-check, now or when the same build compiled the same file.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::bytes::TokenBytes;
use super::compiled::Compiled;
use super::fast::Fast;
use super::file::Refusal;
use super::later::{Later, Shared};
use super::pieces::Pieces;
use super::reference::Reference;
use super::store::Store;
use super::stored::Stored;
use super::{AddedToken, Engine, Tokenizer, failure, release, selfcheck};
use crate::{Error, Result};

impl Tokenizer {
    /// Reads the content of a `tokenizer.json`; or what a store kept of it, which is much quicker. What was read is kept
    /// in the store if the fast path passed its self-check.
    pub fn load(json: &Shared, store: Option<&Store>) -> Result<Self> {
        let Some(store) = store else { return Self::compiled(json, None) };
        let sha256 = format!("{:x}", Sha256::digest((**json).as_ref()));
        let found = store.get(&sha256, |content| Self::restored(json, &sha256, content));
        found.map_or_else(|| Self::compiled(json, Some(store)), Ok)
    }

    /// Compiles a `tokenizer.json`, and compares both paths.
    fn compiled(shared: &Shared, store: Option<&Store>) -> Result<Self> {
        let json = (**shared).as_ref();
        // The library's own loading takes longest, so the rest goes on beside it.
        let (reference, compiled, sha256) = std::thread::scope(|scope| {
            let compiled = scope.spawn(|| {
                let compiled = Compiled::new(json)?;
                let kept = store.map_or_else(Vec::new, |_| kept(&compiled));
                Ok((compiled, kept))
            });
            let sha256 = scope.spawn(|| format!("{:x}", Sha256::digest(json)));
            let reference = Reference::from_json(json);
            let died = |_| failure("a thread that reads the tokenizer died");
            Ok::<_, Error>((reference?, compiled.join().map_err(died)?, sha256.join().map_err(died)?))
        })?;
        let added = reference.added_tokens();
        let bytes = TokenBytes::of(&reference);
        let (compiled, kept) =
            compiled.map_or_else(|refusal| (Err(refusal), Vec::new()), |(one, kept)| (Ok(one), kept));
        let vocab_size = reference.vocab_size(compiled.as_ref().ok());
        let fast = compiled.and_then(|compiled| compiled.with_added(&added));
        let (fast, engine) = checked(fast, &reference, &added);
        let made = Self {
            fast,
            engine,
            reference: reference.into(),
            vocab_size,
            bytes,
            pieces: OnceLock::new(),
            added,
            sha256,
        };
        Ok(made.without_reference(shared, kept, store))
    }

    /// Lets the reference go, which takes more memory than all else, if hardly anybody will ask for it again; then all
    /// that is left can be kept.
    fn without_reference(mut self, json: &Shared, kept: Vec<u8>, store: Option<&Store>) -> Self {
        if self.engine.is_fast() && self.pieces().is_some() {
            self.reference = Later::of(json.clone());
            release::freed_memory();
            if let Some(store) = store {
                self.keep(kept, store);
            }
        }
        self
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
