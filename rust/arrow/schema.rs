//! The two tables of the contract, as Arrow schemas, and their version.
//!
//! *Invariant*: a schema of one version never changes, apart from new nullable columns at its end.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::{Error, Result};

/// The name of the table of trajectories, under [`NAME_KEY`] in its metadata.
pub const TRAJECTORIES: &str = "tokentape.trajectories";
/// The name of the table of packed batches.
pub const PACKED: &str = "tokentape.packed";
/// The version of both, under [`VERSION_KEY`].
pub const VERSION: u32 = 1;
/// The metadata key of the name.
pub const NAME_KEY: &str = "tokentape.schema";
/// The metadata key of the version.
pub const VERSION_KEY: &str = "tokentape.schema_version";

/// A list column whose items are never null.
pub(crate) fn list(name: &str, item: DataType, nullable: bool) -> Field {
    Field::new(name, DataType::List(item_field(item)), nullable)
}

/// The item of a list column.
pub(crate) fn item_field(item: DataType) -> FieldRef {
    Arc::new(Field::new(Field::LIST_FIELD_DEFAULT_NAME, item, false))
}

/// The fields of an item of `turns`.
pub(crate) fn turn_fields() -> Fields {
    Fields::from(vec![
        Field::new("start", DataType::Int32, false),
        Field::new("end", DataType::Int32, false),
        Field::new("message", DataType::Int32, false),
        Field::new("finish_reason", DataType::Utf8, false),
        Field::new("reward", DataType::Float32, true),
    ])
}

/// The fields of an item of `policy_versions`.
pub(crate) fn version_fields() -> Fields {
    Fields::from(vec![
        Field::new("start", DataType::Int32, false),
        Field::new("end", DataType::Int32, false),
        Field::new("version", DataType::Int64, false),
    ])
}

/// The columns of `tokentape.trajectories`, in order.
pub fn trajectory_fields() -> Vec<Field> {
    use DataType::{Float32, Int32, Struct, UInt8, Utf8};
    vec![
        Field::new("group_id", Utf8, false),
        Field::new("rollout_id", Utf8, false),
        Field::new("trajectory_id", Utf8, false),
        Field::new("env", Utf8, false),
        Field::new("agent", Utf8, true),
        Field::new("parent_id", Utf8, true),
        Field::new("fork_at", Int32, true),
        Field::new("fork_kind", Utf8, true),
        list("token_ids", Int32, false),
        list("sampled_mask", UInt8, false),
        list("loss_mask", UInt8, false),
        list("loss_weight", Float32, true),
        list("logprobs", Float32, true),
        list("advantages", Float32, true),
        list("message_index", Int32, false),
        list("turns", Struct(turn_fields()), false),
        list("policy_versions", Struct(version_fields()), true),
        Field::new("reward", Float32, true),
        Field::new("metrics", Utf8, false),
        Field::new("messages", Utf8, false),
        Field::new("tools", Utf8, false),
        Field::new("provenance", Utf8, false),
    ]
}

/// The schema of `tokentape.trajectories`.
pub fn trajectories() -> SchemaRef {
    with_metadata(trajectory_fields(), TRAJECTORIES)
}

/// The columns of a packed batch that are there only when the rows have them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one column is there")]
pub struct PackedColumns {
    /// `loss_weight: list<float32>`.
    pub loss_weight: bool,
    /// `logprobs: list<float32>`.
    pub logprobs: bool,
    /// `ref_logprobs: list<float32>`.
    pub ref_logprobs: bool,
    /// `advantages: list<float32>`.
    pub advantages: bool,
    /// `policy_version: list<int64>`.
    pub policy_version: bool,
    /// `parent`, `segment_parent`, `leaf_row` and `leaf_segment: list<int32>`: rows share prefixes.
    pub tree: bool,
}

/// The schema of `tokentape.packed`.
pub fn packed(columns: PackedColumns) -> SchemaRef {
    use DataType::{Float32, Int32, Int64, UInt8};
    let mut fields = vec![
        Field::new("rank", Int32, false),
        Field::new("micro_step", Int32, false),
        list("input_ids", Int32, false),
        list("position_ids", Int32, false),
        list("segment_ids", Int32, false),
        list("sampled_mask", UInt8, false),
        list("loss_mask", UInt8, false),
    ];
    let optional = [
        (columns.loss_weight, "loss_weight", Float32),
        (columns.logprobs, "logprobs", Float32),
        (columns.advantages, "advantages", Float32),
        (columns.policy_version, "policy_version", Int64),
        (columns.ref_logprobs, "ref_logprobs", Float32),
        (columns.tree, "parent", Int32),
    ];
    fields.extend(optional.into_iter().filter(|(present, ..)| *present).map(|(_, name, item)| list(name, item, false)));
    fields.extend(["cu_seqlens", "seq_lens", "row", "offset"].map(|name| list(name, Int32, false)));
    if columns.tree {
        fields.extend(["segment_parent", "leaf_row", "leaf_segment"].map(|name| list(name, Int32, false)));
    }
    with_metadata(fields, PACKED)
}

/// A schema with the metadata of the contract: name and version, nothing else.
pub(crate) fn with_metadata(fields: Vec<Field>, name: &str) -> SchemaRef {
    let metadata =
        HashMap::from([(NAME_KEY.to_owned(), name.to_owned()), (VERSION_KEY.to_owned(), VERSION.to_string())]);
    Arc::new(Schema::new(fields).with_metadata(metadata))
}

/// Refuses a table that says it is another one, or a version that this library does not know.
///
/// A table without metadata is taken by its columns: some libraries drop metadata.
pub(crate) fn check_metadata(schema: &Schema) -> Result<()> {
    if let Some(name) = schema.metadata().get(NAME_KEY).filter(|name| *name != TRAJECTORIES) {
        return Err(Error::schema(format!(
            "the table is `{name}`, not `{TRAJECTORIES}`: pass the table that Batch.write or Batch.to_pyarrow gave"
        )));
    }
    let Some(text) = schema.metadata().get(VERSION_KEY) else { return Ok(()) };
    match text.parse::<u32>() {
        Ok(version) if version <= VERSION => Ok(()),
        Ok(version) => Err(Error::schema(format!(
            "the table has version {version} of `{TRAJECTORIES}`, this library reads up to {VERSION}: upgrade tokentape"
        ))),
        Err(_) => Err(Error::schema(format!("the metadata `{VERSION_KEY}` is {text:?}, not a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_version_says_upgrade() {
        let schema =
            Schema::new(trajectory_fields()).with_metadata(HashMap::from([(VERSION_KEY.to_owned(), "2".to_owned())]));
        assert!(check_metadata(&schema).is_err_and(|error| error.message().contains("upgrade tokentape")));
    }

    #[test]
    fn packed_has_only_the_columns_asked_for() {
        let schema = packed(PackedColumns { logprobs: true, ..PackedColumns::default() });
        assert!(schema.index_of("logprobs").is_ok());
        assert!(schema.index_of("advantages").is_err());
    }
}
