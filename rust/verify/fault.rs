//! A fault: its kind, the row, the tokens, and what is wrong.

use std::ops::Range;

/// What is wrong. The names are those that a reader of reports sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The mask has another length than the ids.
    MaskLength,
    /// The logprobs have another length than the ids.
    LogprobsLength,
    /// Another per-token column has another length than the ids.
    ColumnLength,
    /// An id below zero.
    NegativeId,
    /// An id that the vocabulary does not have.
    IdOutOfVocabulary,
    /// A mask value that is neither 0 nor 1.
    MaskValue,
    /// A weight, advantage or reward that is not finite.
    NotFinite,
    /// NaN on a sampled token.
    NanLogprob,
    /// Null on a sampled token.
    NullLogprob,
    /// An infinity on a sampled token.
    InfiniteLogprob,
    /// A logprob above zero.
    PositiveLogprob,
    /// A value that an engine writes when it has none.
    SentinelLogprob,
    /// A sampled token has what the format writes on unsampled ones.
    FillerOnSampledToken,
    /// A turn whose logprobs are all exactly zero.
    ZeroFilledLogprobs,
    /// A turn whose logprobs are all one value.
    ConstantLogprobs,
    /// The row has no logprobs, and others have.
    MissingLogprobs,
    /// The logprobs stand beside their tokens.
    LogprobsShifted,
    /// The mask stands beside its tokens.
    MaskShifted,
    /// No token is trained.
    AllZeroMask,
    /// Text of a tool or user is trained.
    ToolTextTrained,
    /// Text of the template is trained.
    TemplateTextTrained,
    /// A part of the prompt is trained.
    PromptTrained,
    /// Padding is trained.
    PadTokenTrained,
    /// The first token of a row is trained, which nothing predicts.
    SegmentStartTrained,
    /// The stop token of a sampled turn carries no loss.
    StopTokenNotTrained,
    /// A sampled turn carries no loss.
    SampledTurnNotTrained,
    /// The stop token stands twice.
    DoubledStopToken,
    /// A stop token counts as sampled in a turn that was cut by its length.
    StopAfterLength,
    /// The turns are not the sampled spans.
    TurnsDisagree,
    /// The runs of policy versions are not the sampled tokens.
    VersionsDisagree,
    /// A token belongs to a message that is not there.
    MessageIndexWrong,
    /// A column of JSON text is none.
    InvalidJson,
    /// The row is a copy of another.
    DuplicatedRow,
    /// Two rows have one id.
    RepeatedId,
    /// A fragment does not begin with the tokens of its parent.
    BrokenParent,
    /// A token is trained in a row and in its parent.
    TrainedTwice,
    /// The row is longer than it may be.
    Overlong,
    /// All rollouts of a group have one reward.
    ConstantReward,
    /// A turn ends in a stop token that was not sampled.
    TurnClosedUnsampled,
    /// A token that was not sampled has a logprob.
    LogprobOnUnsampledToken,
    /// The prompt is not what the template writes for the messages before the first turn.
    PromptDiffers,
    /// What stands behind a turn is not what the template writes there.
    TailDiffers,
    /// A recorded message is not what was sampled.
    TextDiffers,
    /// The token that begins a text stands twice.
    DoubledBos,
    /// The turns and the messages are not of one conversation.
    MessagesDisagree,
    /// The row was made with another template.
    TemplateChanged,
    /// The row was made with another tokenizer.
    TokenizerChanged,
    /// The row names another template or tokenizer file, and holds with this model's.
    OtherFile,
    /// The template refuses the messages of the row.
    CannotRender,
    /// The row does not say what it was rendered with.
    Unproven,
    /// The policy sampled other ids than encoding its text gives.
    Retokenised,
    /// The template prints reasoning once, and not again.
    ThinkingStripped,
    /// The template prints the results of tools together.
    ToolResultMerged,
    /// Texts were encoded apart at the edge of a turn, where the whole would give other ids.
    Seam,
    /// The template prints earlier messages otherwise once there are later ones.
    HistoryRewritten,
    /// The template prints a turn otherwise than the generation prompt began it.
    GenerationPromptRewritten,
    /// The template prints a message otherwise than it was sampled.
    ContentRewritten,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// The row is wrong.
    Fault,
    /// The row may be right and is worth a look.
    Smell,
    /// A fact about a row that is right.
    Note,
}

impl Level {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Smell => "smell",
            Self::Note => "note",
        }
    }
}

impl Kind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaskLength => "mask-length-mismatch",
            Self::LogprobsLength => "logprobs-length-mismatch",
            Self::ColumnLength => "column-length-mismatch",
            Self::NegativeId => "negative-id",
            Self::IdOutOfVocabulary => "id-out-of-vocabulary",
            Self::MaskValue => "mask-value",
            Self::NotFinite => "not-finite",
            Self::NanLogprob => "nan-logprob",
            Self::NullLogprob => "null-logprob",
            Self::InfiniteLogprob => "infinite-logprob",
            Self::PositiveLogprob => "positive-logprob",
            Self::SentinelLogprob => "sentinel-logprob",
            Self::FillerOnSampledToken => "filler-on-sampled-token",
            Self::ZeroFilledLogprobs => "zero-filled-logprobs",
            Self::ConstantLogprobs => "constant-logprobs",
            Self::MissingLogprobs => "missing-logprobs",
            Self::LogprobsShifted => "logprobs-shifted",
            Self::MaskShifted => "mask-shifted",
            Self::AllZeroMask => "all-zero-mask",
            Self::ToolTextTrained => "tool-text-trained",
            Self::TemplateTextTrained => "template-text-trained",
            Self::PromptTrained => "prompt-trained",
            Self::PadTokenTrained => "pad-token-trained",
            Self::SegmentStartTrained => "segment-start-trained",
            Self::StopTokenNotTrained => "stop-token-not-trained",
            Self::SampledTurnNotTrained => "sampled-turn-not-trained",
            Self::DoubledStopToken => "doubled-stop-token",
            Self::StopAfterLength => "stop-after-length",
            Self::TurnsDisagree => "turns-disagree",
            Self::VersionsDisagree => "versions-disagree",
            Self::MessageIndexWrong => "message-index-wrong",
            Self::InvalidJson => "invalid-json",
            Self::DuplicatedRow => "duplicated-row",
            Self::RepeatedId => "repeated-id",
            Self::BrokenParent => "broken-parent",
            Self::TrainedTwice => "trained-twice",
            Self::Overlong => "overlong",
            Self::ConstantReward => "constant-reward",
            Self::TurnClosedUnsampled => "turn-closed-unsampled",
            Self::LogprobOnUnsampledToken => "logprob-on-unsampled-token",
            Self::PromptDiffers => "prompt-differs",
            Self::TailDiffers => "tail-differs",
            Self::TextDiffers => "text-differs",
            Self::DoubledBos => "doubled-bos",
            Self::MessagesDisagree => "messages-disagree",
            Self::TemplateChanged => "template-changed",
            Self::TokenizerChanged => "tokenizer-changed",
            Self::OtherFile => "other-file",
            Self::CannotRender => "cannot-render",
            Self::Unproven => "unproven",
            Self::Retokenised => "retokenised",
            Self::ThinkingStripped => "thinking-stripped",
            Self::ToolResultMerged => "tool-result-merged",
            Self::Seam => "seam",
            Self::HistoryRewritten => "history-rewritten",
            Self::GenerationPromptRewritten => "generation-prompt-rewritten",
            Self::ContentRewritten => "content-rewritten",
        }
    }

    /// Whether it is a fault, only smells, or is a fact.
    pub fn level(self) -> Level {
        match self {
            Self::ConstantReward
            | Self::TurnClosedUnsampled
            | Self::LogprobOnUnsampledToken
            | Self::OtherFile
            | Self::Unproven => Level::Smell,
            Self::Retokenised
            | Self::ThinkingStripped
            | Self::ToolResultMerged
            | Self::Seam
            | Self::HistoryRewritten
            | Self::GenerationPromptRewritten
            | Self::ContentRewritten => Level::Note,
            _ => Level::Fault,
        }
    }
}

/// Something wrong with a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong.
    pub kind: Kind,
    /// The row, counted from 0 over everything that was linted.
    pub row: usize,
    /// The tokens it is about; `None` where it is about the row.
    pub tokens: Option<Range<usize>>,
    /// The column it is about.
    pub column: &'static str,
    /// What is wrong, and what should be.
    pub message: String,
}

/// The faults of one row, while it is read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) row: usize,
    pub(super) faults: Vec<Fault>,
}

impl Found {
    pub(super) fn new(row: usize) -> Self {
        Self { row, faults: Vec::new() }
    }

    /// A fault of the row as a whole.
    pub(super) fn row(&mut self, kind: Kind, column: &'static str, message: impl Into<String>) {
        self.faults.push(Fault { kind, row: self.row, tokens: None, column, message: message.into() });
    }

    /// A fault of some tokens.
    pub(super) fn tokens(
        &mut self,
        kind: Kind,
        column: &'static str,
        tokens: Range<usize>,
        message: impl Into<String>,
    ) {
        self.faults.push(Fault { kind, row: self.row, tokens: Some(tokens), column, message: message.into() });
    }

    /// Whether a token is already part of a fault that names tokens.
    pub(super) fn explains(&self, token: usize) -> bool {
        self.faults.iter().any(|fault| fault.tokens.as_ref().is_some_and(|tokens| tokens.contains(&token)))
    }
}
