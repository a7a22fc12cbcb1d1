//! The reference of a tokenizer, made when it is first needed: where the fast path agrees with it, few ever ask for it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::reference::Reference;
use crate::Result;

/// The content of a `tokenizer.json`, wherever it lies.
pub type Shared = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A reference, or what it is made from.
pub(super) struct Later {
    json: Option<Shared>,
    made: OnceLock<Result<Reference>>,
}

impl Later {
    /// The reference of a `tokenizer.json` that was read before without an error.
    pub(super) fn of(json: Shared) -> Self {
        Self { json: Some(json), made: OnceLock::new() }
    }

    /// The reference. What it costs is paid here, once.
    pub(super) fn get(&self) -> Result<&Reference> {
        let json = || self.json.as_ref().map_or(&[] as &[u8], |json| (**json).as_ref());
        self.made.get_or_init(|| Reference::from_json(json())).as_ref().map_err(Clone::clone)
    }
}

impl From<Reference> for Later {
    fn from(reference: Reference) -> Self {
        Self { json: None, made: Ok(reference).into() }
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Later").field(&self.made).finish()
    }
}
