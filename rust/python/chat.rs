//! `Chat`: a chat template with a tokenizer.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use numpy::PyArray1;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict};

use super::arrays::{self, frozen};
use super::audit::PyAudit;
use super::convert;
use super::error::{to_python, warn};
use super::gil::detached;
use super::many;
use super::options::{Options, clock, named_data};
use super::parse::{self, PyMessage, PyParseStream};
use super::rendered::{PyRendered, choice};
use super::stream::PyTextStream;
use super::template::warn_unread;
use super::trajectory::{PyTrajectory, identity};
use crate::audit::Audit;
use crate::message::Conversation;
use crate::parse::{Grammar, Parser};
use crate::render::{ControlTokens, RenderSettings, Renderer, StopSource, StopToken, Templates};
use crate::template::{Clock, Template};
use crate::tokenizer::{Shared, Store, Tokenizer};
use crate::trajectory::{Dialogue, History, Reader};
use crate::{Error, Result, TokenId};

/// A shorter text is encoded before another thread could take the GIL.
const SHORT_TEXT: usize = 512;

/// The Python face of a [`Renderer`]; `tokentape.Chat` adds where its parts come from.
#[pyclass(frozen, subclass, name = "Chat", module = "tokentape._core")]
pub(super) struct PyChat {
    renderer: Renderer,
    /// Set once a person was told what the template does to history.
    history_told: AtomicBool,
    /// What is learned of the template.
    reader: Reader,
    /// The format that was declared last.
    declared: Mutex<Option<Arc<Parser>>>,
}

impl PyChat {
    /// The parser of what the template for a conversation with or without tools writes, or of a declared format.
    fn parser(&self, py: Python<'_>, grammar: Option<&Bound<'_, PyAny>>, with_tools: bool) -> PyResult<Arc<Parser>> {
        if let Some(grammar) = grammar {
            return self.declared(py, parse::grammar(grammar)?);
        }
        detached(py, || self.reader.parser.of(&self.renderer, &RenderSettings::default(), with_tools))
    }

    /// The parser of a declared format; one that is declared again is laid out already.
    fn declared(&self, py: Python<'_>, grammar: Grammar) -> PyResult<Arc<Parser>> {
        // The lock is never held while the GIL is given up: another thread could wait for both.
        let last = || self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        if let Some(parser) = known.filter(|parser| *parser.grammar() == grammar) {
            return Ok(parser);
        }
        let parser = detached(py, || Ok(Arc::new(Parser::declared(&self.renderer, grammar))))?;
        *last() = Some(parser.clone());
        Ok(parser)
    }

    /// What is learned of the template.
    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The engine, for other classes that render with it.
    pub(super) fn renderer(&self) -> &Renderer {
        &self.renderer
    }
}

/// Chat templates as Python gives them: none, one, or several by name.
#[derive(FromPyObject, IntoPyObject)]
enum Sources {
    One(String),
    Named(BTreeMap<String, String>),
}

/// A stop token as Python gives it.
#[derive(FromPyObject)]
enum Stop {
    Id(TokenId),
    Text(String),
}

#[pymethods]
impl PyChat {
    #[new]
    #[pyo3(signature = (tokenizer, templates, special_tokens, stops, store=None))]
    fn new(
        py: Python<'_>,
        tokenizer: PyBackedBytes,
        templates: Option<Sources>,
        special_tokens: &Bound<'_, PyDict>,
        stops: Vec<(Stop, String)>,
        store: Option<(std::path::PathBuf, String)>,
    ) -> PyResult<Self> {
        let special_tokens = named_data(special_tokens)?;
        let store = store.map(|(folder, build)| Store::new(folder, build));
        let renderer = detached(py, move || {
            let tokenizer = Tokenizer::load(&(Arc::new(tokenizer) as Shared), store.as_ref())?;
            let stops = stops.into_iter().map(|(stop, source)| stop_token(&tokenizer, stop, &source));
            let stops = stops.filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
            Ok(Renderer::new(tokenizer, &compile(templates)?, special_tokens.into(), stops))
        })?;
        if let Some(warning) = renderer.tokenizer().engine().warning() {
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(warning)?, 1)?;
        }
        let reader = Reader::default();
        Ok(Self { renderer, history_told: AtomicBool::new(false), reader, declared: Mutex::default() })
    }

    #[pyo3(signature = (messages, *, tools=None, documents=None, add_generation_prompt=None, **options), text_signature = "(self, messages, *, tools=None, documents=None, add_generation_prompt=False, continue_final_message=False, now=None, control_tokens='all', trusted_roles=(), seams='parity', chat_template=None, template_kwargs=None, **kwargs)")]
    fn render<'py>(
        &self,
        messages: &Bound<'py, PyAny>,
        tools: Option<Bound<'py, PyAny>>,
        documents: Option<Bound<'py, PyAny>>,
        add_generation_prompt: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<PyRendered> {
        let py = messages.py();
        let options =
            Options::read(py, options, RenderSettings::default())?.with(tools, documents, add_generation_prompt)?;
        let conversation = options.conversation(messages)?;
        self.warn_unread(py, &conversation, &options.settings)?;
        detached(py, || self.renderer.render(&conversation, &options.settings)).map(PyRendered::new)
    }

    #[pyo3(signature = (conversations, **options), text_signature = "(self, conversations, *, tools=None, documents=None, add_generation_prompt=False, continue_final_message=False, now=None, control_tokens='all', trusted_roles=(), seams='parity', chat_template=None, template_kwargs=None, **kwargs)")]
    fn render_batch(
        &self,
        py: Python<'_>,
        conversations: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<PyRendered>> {
        let options = Options::read(py, options, RenderSettings::default())?;
        let check = |conversation: &Conversation| self.warn_unread(py, conversation, &options.settings);
        let render = |conversation| self.renderer.render(&conversation, &options.settings).map(PyRendered::new);
        many::rendered(conversations, &options, check, render)
    }

    #[pyo3(signature = (messages, *, history="keep", rollout=None, agent=None, id=None, media=None, **options), text_signature = "(self, messages, *, tools=None, documents=None, history='keep', control_tokens='template', trusted_roles=(), now=None, media=None, rollout=None, agent=None, id=None, chat_template=None, template_kwargs=None, **kwargs)")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn start(
        slf: &Bound<'_, Self>,
        messages: &Bound<'_, PyAny>,
        history: &str,
        rollout: Option<&PyTrajectory>,
        agent: Option<String>,
        id: Option<String>,
        media: Option<&str>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyTrajectory> {
        let py = slf.py();
        let mut defaults = RenderSettings { control_tokens: ControlTokens::Template, ..RenderSettings::default() };
        defaults.options.now = Some(Clock::now());
        let options = Options::read(py, options, defaults)?;
        let conversation = options.conversation(messages)?;
        slf.get().warn_unread(py, &conversation, &options.settings)?;
        // A template that is chosen by name has a format of its own.
        let reader = if options.settings.template.is_none() { slf.get().reader.clone() } else { Reader::default() };
        let dialogue = Dialogue {
            reader,
            renderer: slf.get().renderer.clone(),
            settings: options.settings,
            conversation: Arc::new(conversation),
            history: History::parse(history).map_err(|error| to_python(py, &error))?,
            media_placeholders: choice(
                py,
                "media",
                media.unwrap_or("error"),
                &[("error", false), ("placeholder", true)],
            )?,
            explicit: None,
            chat: Some(Arc::new(slf.clone().into_any().unbind())),
        };
        slf.get().tell_history(py, &dialogue)?;
        PyTrajectory::start(py, dialogue, identity(rollout, agent, id))
    }

    fn encode<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyArray1<TokenId>>> {
        let tokenizer = self.renderer.tokenizer();
        let ids = if text.len() < SHORT_TEXT {
            tokenizer.encode(text).map_err(|error| to_python(py, &error))?
        } else {
            detached(py, || tokenizer.encode(text))?
        };
        Ok(frozen(py, ids))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
    ) -> PyResult<Vec<Bound<'py, PyArray1<TokenId>>>> {
        let encoded = detached(py, move || self.renderer.encode_batch(&texts))?;
        Ok(encoded.into_iter().map(|ids| frozen(py, ids)).collect())
    }

    #[pyo3(signature = (token_ids, *, skip_special_tokens=false))]
    fn decode(&self, py: Python<'_>, token_ids: &Bound<'_, PyAny>, skip_special_tokens: bool) -> PyResult<String> {
        let ids = arrays::token_ids("decode", token_ids)?;
        detached(py, || self.renderer.tokenizer().decode(&ids, skip_special_tokens))
    }

    #[pyo3(signature = (*, skip_special_tokens=false))]
    fn text_stream(&self, py: Python<'_>, skip_special_tokens: bool) -> PyResult<PyTextStream> {
        // Lays the tokens out, which takes a while the first time.
        detached(py, || self.renderer.tokenizer().decode(&[], skip_special_tokens))?;
        Ok(PyTextStream::new(self.renderer.clone(), skip_special_tokens))
    }

    fn token_bytes<'py>(&self, py: Python<'py>, token_id: TokenId) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.renderer.token_bytes(token_id).map_err(|error| to_python(py, &error))?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn token_id(&self, text: &str) -> Option<TokenId> {
        self.renderer.tokenizer().id_of(text)
    }

    #[getter]
    fn engine(&self) -> String {
        self.renderer.tokenizer().engine().to_string()
    }

    #[getter]
    fn vocab_size(&self) -> usize {
        self.renderer.tokenizer().vocab_size()
    }

    #[getter]
    fn stop_token_ids(&self, py: Python<'_>) -> PyResult<Vec<TokenId>> {
        detached(py, || Ok(self.renderer.stop_tokens().iter().map(|stop| stop.id).collect()))
    }

    #[getter]
    fn stop_tokens(&self, py: Python<'_>) -> PyResult<Vec<(TokenId, String, Vec<&'static str>)>> {
        let names = |stop: &StopToken| stop.sources.iter().map(|source| source.name()).collect();
        let entry = |stop: &StopToken| (stop.id, (*stop.text).to_owned(), names(stop));
        detached(py, || Ok(self.renderer.stop_tokens().iter().map(entry).collect()))
    }

    #[getter]
    fn special_tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tokens = PyDict::new(py);
        for (name, value) in self.renderer.special_tokens().iter() {
            tokens.set_item(&**name, convert::to_py(py, value)?)?;
        }
        Ok(tokens)
    }

    #[getter]
    fn templates<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let templates = PyDict::new(py);
        for (name, masker) in self.renderer.templates().entries() {
            templates.set_item(&**name, masker.template().source())?;
        }
        Ok(templates)
    }

    #[pyo3(signature = (*, chat_template=None, now=None))]
    fn audit(
        &self,
        py: Python<'_>,
        chat_template: Option<String>,
        now: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyAudit> {
        let mut settings = RenderSettings { template: chat_template.map(Arc::from), ..RenderSettings::default() };
        settings.options.now = now.map(clock).transpose()?.flatten();
        detached(py, || Audit::of(&self.renderer, &settings)).map(PyAudit::new)
    }

    #[pyo3(signature = (token_ids, tools=None, prompt=None, *, grammar=None))]
    fn parse(
        &self,
        py: Python<'_>,
        token_ids: &Bound<'_, PyAny>,
        tools: Option<&Bound<'_, PyAny>>,
        prompt: Option<&Bound<'_, PyAny>>,
        grammar: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyMessage> {
        parse::parse(py, &*self.parser(py, grammar, tools.is_some())?, token_ids, tools, prompt)
    }

    #[pyo3(signature = (tools=None, prompt=None, *, grammar=None))]
    fn parse_stream(
        &self,
        py: Python<'_>,
        tools: Option<&Bound<'_, PyAny>>,
        prompt: Option<&Bound<'_, PyAny>>,
        grammar: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyParseStream> {
        parse::stream(py, &self.parser(py, grammar, tools.is_some())?, tools, prompt)
    }

    #[getter]
    fn grammar<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parse::grammar_dict(py, self.parser(py, None, true)?.grammar())
    }

    fn __repr__(&self) -> String {
        self.renderer.describe()
    }

    /// The SHA-256 of the `tokenizer.json` it was made of.
    fn _tokenizer_sha256(&self) -> &str {
        self.renderer.tokenizer().sha256()
    }

    /// A `tokenizer.json` that makes the tokenizer again.
    fn _tokenizer_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        detached(py, || self.renderer.tokenizer().to_json()).map(|json| PyBytes::new(py, json.as_bytes()))
    }

    /// The further arguments of the constructor, for pickling.
    fn _parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        let templates = self.renderer.templates();
        let mut named = templates
            .entries()
            .iter()
            .map(|(name, masker)| ((**name).to_owned(), masker.template().source().to_owned()));
        let templates = if templates.are_named() {
            Some(Sources::Named(named.collect()))
        } else {
            named.next().map(|(_, source)| Sources::One(source))
        };
        let given = self.renderer.given_stops().iter();
        let stops = given.map(|stop| (stop.id, stop.sources.first().map_or("argument", |source| source.name())));
        Ok((templates, self.special_tokens(py)?, stops.collect()))
    }
}

type Parts<'py> = (Option<Sources>, Bound<'py, PyDict>, Vec<(TokenId, &'static str)>);

impl PyChat {
    fn warn_unread(&self, py: Python<'_>, conversation: &Conversation, settings: &RenderSettings) -> PyResult<()> {
        if conversation.arguments.is_empty() {
            return Ok(());
        }
        let Ok(template) = self.renderer.template(conversation, settings) else { return Ok(()) };
        warn_unread(py, template, conversation)
    }
}

impl PyChat {
    /// Tells once, before a trajectory that only appends, that the template rewrites what a policy saw.
    fn tell_history(&self, py: Python<'_>, dialogue: &Dialogue) -> PyResult<()> {
        if dialogue.history != History::Keep || self.history_told.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let Some(rewriting) = py.detach(|| dialogue.rewriting()) else { return Ok(()) };
        let warning = format!(
            "{}. A trajectory with history=\"keep\" goes on with what the policy saw; history=\"fork\" begins a fragment \
             there, and chat.audit() tells more",
            rewriting.words()
        );
        warn(py, "HistoryWarning", &warning)
    }
}

fn compile(sources: Option<Sources>) -> Result<Templates> {
    match sources {
        None => Ok(Templates::none()),
        Some(Sources::One(source)) => Template::compile(&source).map(Templates::one),
        Some(Sources::Named(named)) => {
            let compiled = named.into_iter().map(|(name, source)| Ok((name.into(), Template::compile(&source)?)));
            Ok(Templates::named(compiled.collect::<Result<Vec<_>>>()?))
        }
    }
}

/// The stop token of an id or a text. A text that is no token of the tokenizer's configuration names nothing.
fn stop_token(tokenizer: &Tokenizer, stop: Stop, source: &str) -> Result<Option<StopToken>> {
    let source = StopSource::from_name(source).unwrap_or(StopSource::Argument);
    let found = match &stop {
        Stop::Id(id) => Some(*id).filter(|id| usize::try_from(*id).is_ok_and(|id| id < tokenizer.vocab_size())),
        Stop::Text(text) => tokenizer.id_of(text),
    };
    match (found, stop) {
        (Some(id), _) => Ok(Some(StopToken::new(tokenizer, id, source))),
        (None, _) if source != StopSource::Argument => Ok(None),
        (None, Stop::Id(id)) => Err(Error::value(format!("stop_tokens: the id {id} is outside the vocabulary"))),
        (None, Stop::Text(text)) => Err(Error::value(format!("stop_tokens: {text:?} is no token of this tokenizer"))),
    }
}
