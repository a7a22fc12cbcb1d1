//! Tolerant readers: any Arrow table with the columns of the contract becomes record batches in canonical form.
//!
//! Readers rely on nothing: offsets are checked by value; list, large list and fixed-size list, the string kinds, any
//! item name and any nullability are accepted. Offsets are copied where their width differs, values never are. Columns
//! that the contract does not know are kept.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, StructArray, new_null_array};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::write::list_column;
use super::{optional, schema};
use crate::{Error, Result};

/// The canonical schema of a table: the columns of the contract, then the columns it does not know.
pub(super) fn canonical_schema(found: &Schema) -> Result<SchemaRef> {
    schema::check_metadata(found)?;
    let mut fields = schema::trajectory_fields();
    let missing: Vec<&str> = fields
        .iter()
        .filter(|field| !field.is_nullable() && found.index_of(field.name()).is_err())
        .map(|field| field.name().as_str())
        .collect();
    if !missing.is_empty() {
        return Err(Error::schema(format!(
            "the table lacks {} of `{}`: it has {}; build the table with Batch.from_groups or Batch.from_rows",
            quoted(&missing),
            schema::TRAJECTORIES,
            quoted(&found.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>()),
        )));
    }
    let known = fields.len();
    let extra = found.fields().iter().filter(|field| !fields[..known].iter().any(|own| own.name() == field.name()));
    let kept = |field: &FieldRef| optional::field(field.name()).unwrap_or_else(|| field.as_ref().clone());
    fields.extend(extra.map(kept).collect::<Vec<_>>());
    Ok(schema::with_metadata(fields, schema::TRAJECTORIES))
}

/// The canonical schema of tables put together: a column that one of them lacks is null there.
pub(super) fn merged_schema<'a>(schemas: impl Iterator<Item = &'a Schema>) -> Result<SchemaRef> {
    let mut fields = schema::trajectory_fields();
    for field in schemas.flat_map(Schema::fields) {
        match fields.iter().find(|own| own.name() == field.name()) {
            None => fields.push(field.as_ref().clone().with_nullable(true)),
            Some(own) if own.data_type() == field.data_type() => {}
            Some(own) => return Err(wrong_type(field.name(), own.data_type(), field.data_type())),
        }
    }
    Ok(schema::with_metadata(fields, schema::TRAJECTORIES))
}

fn quoted(names: &[&str]) -> String {
    match names {
        [] => "no columns".to_owned(),
        [name] => format!("the column `{name}`"),
        names => format!("the columns `{}`", names.join("`, `")),
    }
}

/// A record batch in canonical form; more than one where a column has more values than int32 offsets can address.
pub(super) fn canonical(batch: &RecordBatch, canonical: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let known = schema::trajectory_fields().len();
    let (own, extra) = canonical.fields().split_at(known);
    let further = |field: &FieldRef| match optional::field(field.name()) {
        Some(known) => column(batch, &known),
        None => foreign(batch, field),
    };
    let columns = own.iter().map(|field| column(batch, field)).chain(extra.iter().map(further));
    let columns = columns.collect::<Attempt<Vec<_>>>();
    match columns {
        Ok(columns) => Ok(vec![RecordBatch::try_new(canonical.clone(), columns).map_err(|e| refused(&e))?]),
        Err(Refusal::Final(error)) => Err(error),
        Err(Refusal::TooManyValues) if batch.num_rows() > 1 => {
            let half = batch.num_rows() / 2;
            let mut batches = self::canonical(&batch.slice(0, half), canonical)?;
            batches.extend(self::canonical(&batch.slice(half, batch.num_rows() - half), canonical)?);
            Ok(batches)
        }
        Err(Refusal::TooManyValues) => Err(Error::schema("a row has more than 2147483647 values: cut it")),
    }
}

/// Why a column cannot be brought into canonical form.
enum Refusal {
    TooManyValues,
    Final(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

type Attempt<T> = std::result::Result<T, Refusal>;

fn refused(error: &arrow_schema::ArrowError) -> Error {
    Error::schema(format!("the table does not fit the contract: {error}"))
}

fn column(batch: &RecordBatch, field: &Field) -> Attempt<ArrayRef> {
    let Some(array) = batch.column_by_name(field.name()) else {
        return Ok(new_null_array(field.data_type(), batch.num_rows()));
    };
    let array = convert(array, field.data_type(), field.name())?;
    if !field.is_nullable() {
        refuse_nulls(&array, field.name())?;
    }
    Ok(array)
}

/// A column that the contract does not know, as it is.
fn foreign(batch: &RecordBatch, field: &Field) -> Attempt<ArrayRef> {
    match batch.column_by_name(field.name()) {
        None => Ok(new_null_array(field.data_type(), batch.num_rows())),
        Some(array) if array.data_type() == field.data_type() => {
            refuse_damage(array, field.name())?;
            Ok(array.clone())
        }
        Some(array) => Err(wrong_type(field.name(), field.data_type(), array.data_type()).into()),
    }
}

/// Refuses texts that are no UTF-8 and offsets that lead anywhere: readers of damaged files may hand them on unseen.
fn refuse_damage(array: &ArrayRef, name: &str) -> Result<()> {
    let checked = array.to_data().validate_full();
    checked.map_err(|error| Error::schema(format!("`{name}` holds what it must not; the table is damaged: {error}")))
}

fn refuse_nulls(array: &ArrayRef, name: &str) -> Result<()> {
    match first_null(array) {
        None => Ok(()),
        Some(row) => Err(Error::schema(format!("`{name}` is null in row {row}: this column has no nulls"))),
    }
}

/// The first null of an array, which is not searched if it has none.
fn first_null(array: &ArrayRef) -> Option<usize> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0)?;
    nulls.iter().position(|valid| !valid)
}

/// Brings an array into a type of the contract, or says why not.
fn convert(array: &ArrayRef, wanted: &DataType, name: &str) -> Attempt<ArrayRef> {
    match (array.data_type(), wanted) {
        (DataType::Null, _) => Ok(new_null_array(wanted, array.len())),
        (_, DataType::List(item)) => list(array, item.data_type(), name),
        (DataType::Struct(_), DataType::Struct(fields)) => Ok(structs(array.as_struct(), fields, name)?),
        (found, DataType::Utf8) if is_text(found) => {
            refuse_damage(array, name)?;
            arrow_cast::cast(array, &DataType::Utf8)
                .map_err(|error| Error::schema(format!("`{name}` cannot be read as utf8: {error}")).into())
        }
        (found, wanted) if found == wanted => Ok(array.clone()),
        (found, wanted) => Err(wrong_type(name, wanted, found).into()),
    }
}

fn is_text(found: &DataType) -> bool {
    match found {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn wrong_type(name: &str, wanted: &DataType, found: &DataType) -> Error {
    Error::schema(format!("`{name}` is {found}, the contract says {wanted}: cast the column first"))
}

fn structs(array: &StructArray, fields: &arrow_schema::Fields, name: &str) -> Attempt<ArrayRef> {
    let columns = fields.iter().map(|field| {
        let full = format!("{name}.{}", field.name());
        let Some(column) = array.column_by_name(field.name()) else {
            let error = Error::schema(format!("`{full}` is missing"));
            return if field.is_nullable() {
                Ok(new_null_array(field.data_type(), array.len()))
            } else {
                Err(error.into())
            };
        };
        let column = convert(column, field.data_type(), &full)?;
        if !field.is_nullable() {
            refuse_nulls(&column, &full)?;
        }
        Ok(column)
    });
    let columns = columns.collect::<Attempt<Vec<_>>>()?;
    let converted = StructArray::try_new_with_length(fields.clone(), columns, None, array.len());
    Ok(Arc::new(converted.map_err(|error| refused(&error))?))
}

/// The parts of any list array: offsets, values and the validity of the lists.
fn list(array: &ArrayRef, item: &DataType, name: &str) -> Attempt<ArrayRef> {
    let (offsets, values, nulls) = match array.data_type() {
        DataType::List(_) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let offsets = checked(&offsets, values.len(), name)?;
            (offsets, values, nulls)
        }
        DataType::LargeList(_) => rebased(array.as_list::<i64>().clone(), name)?,
        DataType::FixedSizeList(_, size) => fixed(array, *size as usize)?,
        found => return Err(wrong_type(name, &DataType::List(schema::item_field(item.clone())), found).into()),
    };
    let first = offsets.first().copied().unwrap_or_default() as usize;
    let last = offsets.last().copied().unwrap_or_default() as usize;
    let (values, offsets) = if matches!(item, DataType::Struct(_)) || values.null_count() > 0 {
        (values.slice(first, last - first), shifted(&offsets))
    } else {
        (values, offsets)
    };
    refuse_null_items(&values, &offsets, name)?;
    Ok(list_column(convert(&values, item, name)?, offsets, nulls.filter(|nulls| nulls.null_count() > 0))?)
}

/// Refuses lists that hold nulls, naming the row.
fn refuse_null_items(values: &ArrayRef, offsets: &OffsetBuffer<i32>, name: &str) -> Result<()> {
    let Some(item) = first_null(values) else {
        return Ok(());
    };
    let row = offsets.partition_point(|offset| *offset as usize <= item).saturating_sub(1);
    let index = item - offsets[row] as usize;
    Err(Error::schema(format!(
        "`{name}` has a null inside the list of row {row}, at {index}: lists hold values only; a list that was never \
         assigned is null as a whole"
    )))
}

fn shifted(offsets: &OffsetBuffer<i32>) -> OffsetBuffer<i32> {
    let first = offsets.first().copied().unwrap_or_default();
    if first == 0 {
        return offsets.clone();
    }
    OffsetBuffer::new(offsets.iter().map(|offset| offset - first).collect::<Vec<_>>().into())
}

/// Offsets that begin at 0 or later, never fall, and end inside the values.
fn checked(offsets: &OffsetBuffer<i32>, values: usize, name: &str) -> Result<OffsetBuffer<i32>> {
    check_offsets(offsets, values, name)?;
    Ok(offsets.clone())
}

fn check_offsets<O: OffsetSizeTrait>(offsets: &[O], values: usize, name: &str) -> Result<()> {
    let rising = offsets.is_sorted();
    let first = offsets.first().map_or(0, |first| first.to_i64().unwrap_or(-1));
    let last = offsets.last().map_or(0, |last| last.as_usize());
    if offsets.is_empty() || first < 0 || !rising || last > values {
        return Err(Error::schema(format!("`{name}` has offsets that do not fit its values: the table is damaged")));
    }
    Ok(())
}

type Parts = (OffsetBuffer<i32>, ArrayRef, Option<NullBuffer>);

/// A large list with int32 offsets, over the part of the values that it uses.
fn rebased(array: arrow_array::LargeListArray, name: &str) -> Attempt<Parts> {
    let (_, offsets, values, nulls) = array.into_parts();
    check_offsets(&offsets, values.len(), name)?;
    let first = offsets.first().copied().unwrap_or_default();
    let last = offsets.last().copied().unwrap_or_default();
    if last - first > i64::from(i32::MAX) {
        return Err(Refusal::TooManyValues);
    }
    let narrow: Vec<i32> = offsets.iter().map(|offset| (offset - first) as i32).collect();
    let values = values.slice(first as usize, (last - first) as usize);
    Ok((OffsetBuffer::new(ScalarBuffer::from(narrow)), values, nulls))
}

/// A fixed-size list with offsets.
fn fixed(array: &ArrayRef, size: usize) -> Attempt<Parts> {
    let array = array.as_fixed_size_list();
    if array.len().saturating_mul(size) > i32::MAX as usize {
        return Err(Refusal::TooManyValues);
    }
    let offsets: Vec<i32> = (0..=array.len()).map(|row| (row * size) as i32).collect();
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    Ok((offsets, array.values().clone(), array.nulls().cloned()))
}
