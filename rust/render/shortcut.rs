//! Renderings that go on from earlier ones.
//!
//! *Invariant*: the result is that of a full rendering. Where the environment variable `TOKENTAPE_CHECK_SHORTCUTS` is set,
//! as in the tests, every one is compared with it.

use std::sync::OnceLock;

use super::{RenderSettings, Rendered, Renderer, check};
use crate::message::Conversation;
use crate::template::{Checkpoint, Resumable};
use crate::{Error, ErrorKind, Result};

impl Renderer {
    /// As [`Self::render_text`], going on from an earlier rendering of the same conversation with fewer messages.
    pub fn render_text_from(
        &self,
        conversation: &Conversation,
        settings: &RenderSettings,
        from: Option<&Checkpoint>,
    ) -> Result<Resumable> {
        check(conversation, settings)?;
        let options = self.complete(settings).options;
        let resumable = self.template(conversation, settings)?.render_from(conversation, &options, from)?;
        if resumable.taken_over > 0 && is_checked() && self.render_text(conversation, settings)? != resumable.text {
            let taken_over = resumable.taken_over;
            let message = format!("a rendering that took over {taken_over} iterations differs from a full one");
            return Err(Error::new(ErrorKind::Render, message));
        }
        Ok(resumable)
    }

    /// As [`Self::render`], with the place where a rendering of more messages goes on.
    pub fn render_from(
        &self,
        conversation: &Conversation,
        settings: &RenderSettings,
        from: Option<&Checkpoint>,
    ) -> Result<(Rendered, Option<Checkpoint>)> {
        let rendered = self.render_text_from(conversation, settings, from)?;
        let checkpoint = rendered.checkpoint();
        Ok((self.encoded(rendered.text, conversation, settings)?, checkpoint))
    }
}

fn is_checked() -> bool {
    static CHECKED: OnceLock<bool> = OnceLock::new();
    *CHECKED.get_or_init(|| std::env::var_os("TOKENTAPE_CHECK_SHORTCUTS").is_some_and(|value| !value.is_empty()))
}
