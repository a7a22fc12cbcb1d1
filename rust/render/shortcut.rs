//! Renderings that go on from earlier ones.
//!
//! *Invariant*: the result is that of a full rendering. Where the environment variable `TOKENTAPE_CHECK_SHORTCUTS` is set,
//! as in the tests, every one is compared with it.

use std::sync::{Arc, OnceLock};

use super::{RenderSettings, Renderer, check};
use crate::author::{Author, authors};
use crate::message::Conversation;
use crate::template::{Checkpoint, Resumable};
use crate::{Error, ErrorKind, Result, TokenId};

/// What a trajectory keeps of a rendering.
#[derive(Debug)]
pub struct Beginning {
    /// The ids.
    pub token_ids: Vec<TokenId>,
    /// Per token, the message whose value or scaffold it is; -1 for frame, tools and documents.
    pub message_index: Vec<i32>,
    /// The place where a rendering of more messages goes on.
    pub checkpoint: Option<Checkpoint>,
}

impl Renderer {
    /// As [`Self::render_text`], going on from an earlier rendering of the same conversation with fewer messages.
    pub fn render_text_from(
        &self,
        conversation: &Arc<Conversation>,
        settings: &RenderSettings,
        from: Option<&Checkpoint>,
    ) -> Result<Resumable> {
        check(conversation, settings)?;
        let options = self.complete(settings).options;
        let resumable = self.template(conversation, settings)?.render_from(conversation, &options, from)?;
        let differs = || Ok::<_, Error>(self.render_text(conversation, settings)? != resumable.text);
        if resumable.taken_over > 0 && is_checked() && (resumable.is_mixed() || differs()?) {
            let taken_over = resumable.taken_over;
            let message = format!("a rendering that took over {taken_over} iterations differs from a full one");
            return Err(Error::new(ErrorKind::Render, message));
        }
        Ok(resumable)
    }

    /// As [`Self::render`], for what goes on from there.
    pub fn begin_from(
        &self,
        conversation: &Arc<Conversation>,
        settings: &RenderSettings,
        from: Option<&Checkpoint>,
    ) -> Result<Beginning> {
        let rendered = self.render_text_from(conversation, settings, from)?;
        let encoded = self.encode_rendered(&rendered.text, conversation, &self.complete(settings))?;
        let message_index = authors(&rendered.text.spans, &encoded.starts).map(Author::message_index).collect();
        Ok(Beginning { token_ids: encoded.ids, message_index, checkpoint: rendered.into_checkpoint() })
    }
}

fn is_checked() -> bool {
    static CHECKED: OnceLock<bool> = OnceLock::new();
    *CHECKED.get_or_init(|| std::env::var_os("TOKENTAPE_CHECK_SHORTCUTS").is_some_and(|value| !value.is_empty()))
}
