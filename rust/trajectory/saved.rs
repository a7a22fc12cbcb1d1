//! A trajectory as plain data and back, for pickling: fragments it goes on from included.

use std::any::Any;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Dialogue, History, Identity, Logprobs, Reader, Stage, Trajectory, Turn, TurnReward};
use crate::columns::{Chunk, Columns, MessageRun, Origin, SavedColumns};
use crate::message::{Conversation, Data};
use crate::render::{ControlTokens, RenderSettings, Renderer, Seams};
use crate::row::Fork;
use crate::template::Clock;
use crate::{Error, Result};

/// The caller's own object behind a renderer.
pub type ChatObject = Arc<dyn Any + Send + Sync>;

/// What a trajectory needs of a chat.
#[derive(Debug)]
pub struct ChatParts {
    /// The template and the tokenizer.
    pub renderer: Renderer,
    /// What was learned of the template.
    pub reader: Reader,
    /// The caller's own object behind them.
    pub object: ChatObject,
}

/// Plain data: numbers that are many as arrays, everything else as one JSON text.
#[derive(Debug, Clone)]
pub struct Saved {
    /// Ids, logprobs and chosen masks; their runs stand in `structure`.
    pub columns: SavedColumns,
    /// JSON text.
    pub structure: String,
}

impl Trajectory {
    /// This trajectory and the fragments it goes on from, the oldest first.
    pub fn save(&self) -> Vec<Saved> {
        let mut saved = self.parent.as_ref().map_or_else(Vec::new, |parent| parent.save());
        let columns = self.columns.save();
        let structure = self.structure(&columns).to_string();
        saved.push(Saved { columns: SavedColumns { chunks: Vec::new(), messages: Vec::new(), ..columns }, structure });
        saved
    }

    /// The trajectory that was saved; `chat` is what it renders with, if it does.
    pub fn restore(saved: Vec<Saved>, chat: Option<&ChatParts>) -> Result<Self> {
        let mut last = None;
        for fragment in saved {
            let trajectory = serde_json::from_str(&fragment.structure)
                .ok()
                .and_then(|structure: Value| restored(fragment.columns, &structure, chat, last));
            last = Some(Arc::new(trajectory.ok_or_else(broken)?));
        }
        last.map(Arc::unwrap_or_clone).ok_or_else(broken)
    }

    fn structure(&self, columns: &SavedColumns) -> Value {
        let stage = match self.stage {
            Stage::Prompted => "prompted",
            Stage::Acted => "acted",
            Stage::Finished => "finished",
            Stage::Superseded => "superseded",
        };
        let logprobs = match &self.logprobs {
            Logprobs::Undecided => Value::Null,
            Logprobs::Absent => json!(false),
            Logprobs::Recorded(kind) => json!([kind.as_deref()]),
        };
        json!({
            "id": &*self.identity.id,
            "rollout_id": &*self.identity.rollout_id,
            "agent": self.identity.agent.as_deref(),
            "fork": self.fork.as_ref().map(|fork| json!([fork.parent_id, fork.at, fork.kind])),
            "chunks": columns.chunks.iter().map(chunk).collect::<Value>(),
            "messages": columns.messages.iter().map(|run| json!([run.start, run.message])).collect::<Value>(),
            "inherited": columns.inherited,
            "turns": self.turns.iter().map(turn).collect::<Value>(),
            "stage": stage,
            "epoch": self.epoch,
            "reward": bits(self.reward),
            "metrics": self.metrics,
            "notes": self.notes,
            "vocabulary": self.vocabulary,
            "logprobs": logprobs,
            "seams": self.seams,
            "dialogue": self.dialogue.as_ref().map(dialogue),
        })
    }
}

fn broken() -> Error {
    Error::schema("this is no saved trajectory of this version")
}

/// A float by its bits, so that it comes back as it was.
fn bits(value: Option<f64>) -> Value {
    value.map(f64::to_bits).into()
}

fn origin(origin: &Origin) -> Value {
    json!([&*origin.trajectory, origin.epoch])
}

fn chunk(chunk: &Chunk) -> Value {
    json!([chunk.start, chunk.end, origin(&chunk.origin), chunk.version])
}

fn turn(turn: &Turn) -> Value {
    json!([turn.start, turn.end, turn.message, &*turn.finish_reason, bits(turn.reward.get()), origin(&turn.origin)])
}

fn dialogue(dialogue: &Dialogue) -> Value {
    let Dialogue { settings, conversation, .. } = dialogue;
    let now = settings.options.now;
    let text = |data: &Option<Data>| data.as_ref().map(Data::to_json);
    let arguments = conversation.arguments.iter().map(|(name, value)| json!([&**name, value.to_json()]));
    json!({
        "messages": conversation.messages.iter().map(Data::to_json).collect::<Vec<_>>(),
        "tools": text(&conversation.tools),
        "documents": text(&conversation.documents),
        "arguments": arguments.collect::<Value>(),
        "explicit": text(&dialogue.explicit),
        "history": dialogue.history.name(),
        "media": dialogue.media_placeholders,
        "template": settings.template.as_deref(),
        "guarded": settings.control_tokens == ControlTokens::Template,
        "trusted": settings.trusted_roles.iter().map(|role| &**role).collect::<Vec<_>>(),
        "now": now.map(|now| json!([now.year, now.month, now.day, now.hour, now.minute, now.second, now.microsecond])),
    })
}

fn restored(
    columns: SavedColumns,
    structure: &Value,
    chat: Option<&ChatParts>,
    parent: Option<Arc<Trajectory>>,
) -> Option<Trajectory> {
    let columns = SavedColumns {
        chunks: list(&structure["chunks"], read_chunk)?,
        messages: list(&structure["messages"], |run| {
            Some(MessageRun { start: number(&run[0])?, message: signed(&run[1])? })
        })?,
        inherited: number(&structure["inherited"])?,
        ..columns
    };
    let identity = Identity {
        id: text(&structure["id"])?,
        rollout_id: text(&structure["rollout_id"])?,
        agent: text(&structure["agent"]),
    };
    let fork = match &structure["fork"] {
        Value::Null => None,
        fork => Some(Fork {
            parent_id: text(&fork[0])?.to_string(),
            at: signed(&fork[1])?,
            kind: text(&fork[2])?.to_string(),
        }),
    };
    let dialogue = match &structure["dialogue"] {
        Value::Null => None,
        saved => Some(read_dialogue(saved, chat?)?),
    };
    let mut trajectory = Trajectory::begin(identity, Columns::restore(columns), None);
    trajectory.fork = fork;
    trajectory.parent = parent;
    trajectory.turns = list(&structure["turns"], read_turn)?;
    trajectory.stage = read_stage(&structure["stage"])?;
    trajectory.epoch = number(&structure["epoch"])?;
    trajectory.reward = read_bits(&structure["reward"]);
    trajectory.metrics = map(&structure["metrics"])?;
    trajectory.notes = map(&structure["notes"])?;
    trajectory.vocabulary = structure["vocabulary"].as_u64().map(|size| size as usize);
    trajectory.logprobs = match &structure["logprobs"] {
        Value::Null => Logprobs::Undecided,
        Value::Bool(_) => Logprobs::Absent,
        recorded => Logprobs::Recorded(text(&recorded[0])),
    };
    trajectory.dialogue = dialogue;
    trajectory.seams = list(&structure["seams"], number)?;
    Some(trajectory)
}

fn read_stage(value: &Value) -> Option<Stage> {
    Some(match value.as_str()? {
        "prompted" => Stage::Prompted,
        "acted" => Stage::Acted,
        "finished" => Stage::Finished,
        "superseded" => Stage::Superseded,
        _ => return None,
    })
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(item).collect()
}

fn map(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn signed(value: &Value) -> Option<i32> {
    i32::try_from(value.as_i64()?).ok()
}

fn text(value: &Value) -> Option<Arc<str>> {
    value.as_str().map(Arc::from)
}

fn read_bits(value: &Value) -> Option<f64> {
    value.as_u64().map(f64::from_bits)
}

fn read_origin(value: &Value) -> Option<Origin> {
    Some(Origin { trajectory: text(&value[0])?, epoch: number(&value[1])? })
}

fn read_chunk(value: &Value) -> Option<Chunk> {
    let origin = read_origin(&value[2])?;
    Some(Chunk { start: number(&value[0])?, end: number(&value[1])?, origin, version: value[3].as_i64() })
}

fn read_turn(value: &Value) -> Option<Turn> {
    Some(Turn {
        start: number(&value[0])?,
        end: number(&value[1])?,
        message: signed(&value[2])?,
        finish_reason: text(&value[3])?,
        reward: TurnReward::new(read_bits(&value[4])),
        origin: read_origin(&value[5])?,
    })
}

fn data(value: &Value) -> Option<Data> {
    Data::from_json(value.as_str()?).ok()
}

fn read_dialogue(saved: &Value, ChatParts { renderer, reader, object: chat }: &ChatParts) -> Option<Dialogue> {
    let argument = |value: &Value| Some((text(&value[0])?, data(&value[1])?));
    let mut settings = RenderSettings {
        control_tokens: if saved["guarded"].as_bool()? { ControlTokens::Template } else { ControlTokens::All },
        trusted_roles: list(&saved["trusted"], text)?.into(),
        seams: Seams::Rollout,
        template: text(&saved["template"]),
        ..RenderSettings::default()
    };
    settings.options.now = read_clock(&saved["now"]);
    Some(Dialogue {
        renderer: renderer.clone(),
        settings,
        conversation: Arc::new(Conversation {
            messages: list(&saved["messages"], data)?,
            tools: data(&saved["tools"]),
            documents: data(&saved["documents"]),
            arguments: list(&saved["arguments"], argument)?,
        }),
        history: History::parse(saved["history"].as_str()?).ok()?,
        media_placeholders: saved["media"].as_bool()?,
        explicit: data(&saved["explicit"]),
        reader: reader.clone(),
        chat: Some(Arc::clone(chat)),
    })
}

fn read_clock(value: &Value) -> Option<Clock> {
    Some(Clock {
        year: signed(&value[0])?,
        month: number(&value[1])?,
        day: number(&value[2])?,
        hour: number(&value[3])?,
        minute: number(&value[4])?,
        second: number(&value[5])?,
        microsecond: number(&value[6])?,
    })
}
