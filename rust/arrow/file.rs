//! Arrow IPC files and streams, read in place: the arrays point into the given buffer, which may be a memory map.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{FileDecoder, StreamDecoder, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::SchemaRef;

use super::Batch;
use crate::{Error, Result};

const MAGIC: &[u8] = b"ARROW1";
const TRAILER: usize = 10;

/// Why a file cannot be read in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// It is not an Arrow IPC file, or it is cut short or damaged.
    Refused(Error),
    /// Its buffers are compressed: another reader has to unpack them.
    Compressed,
}

impl From<Error> for Damage {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Batch {
    /// The table in an Arrow IPC file; arrays point into `file`.
    pub fn from_file(file: &Buffer) -> Result<Self, Damage> {
        let (schema, batches) = guarded(|| decode_file(file))?;
        Ok(Self::from_record_batches(&schema, &batches)?)
    }

    /// The table in an Arrow IPC stream; arrays point into `stream`.
    pub fn from_stream(stream: Buffer) -> Result<Self> {
        match guarded(|| decode_stream(stream)) {
            Ok((schema, batches)) => Self::from_record_batches(&schema, &batches),
            Err(Damage::Refused(error)) => Err(error),
            Err(Damage::Compressed) => Err(Error::schema("the stream is compressed")),
        }
    }
}

type Decoded = (SchemaRef, Vec<RecordBatch>);

/// Runs a decoder: on hostile bytes it may panic in slicing, and that is a damaged file too.
fn guarded(decode: impl FnOnce() -> Result<Decoded, Damage>) -> Result<Decoded, Damage> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err(damaged("its blocks point outside the file")))
}

fn decode_file(file: &Buffer) -> Result<Decoded, Damage> {
    let footer = footer(file)?;
    let footer = root_as_footer(footer).map_err(damaged)?;
    let schema = footer.schema().ok_or_else(|| damaged("it has no schema"))?;
    let schema = Arc::new(fb_to_schema(schema));
    let mut decoder = FileDecoder::new(schema.clone(), footer.version());
    for block in footer.dictionaries().iter().flatten() {
        decoder.read_dictionary(block, &bytes_of(file, block)?).map_err(|error| reason(&error))?;
    }
    let mut batches = Vec::new();
    for block in footer.recordBatches().iter().flatten() {
        let batch = decoder.read_record_batch(block, &bytes_of(file, block)?).map_err(|error| reason(&error))?;
        batches.extend(batch);
    }
    Ok((schema, batches))
}

fn footer(file: &Buffer) -> Result<&[u8], Damage> {
    if !file.starts_with(MAGIC) {
        return Err(Error::schema("not an Arrow IPC file: it does not begin with ARROW1").into());
    }
    let Some(trailer) = file.len().checked_sub(TRAILER).and_then(|start| file[start..].try_into().ok()) else {
        return Err(damaged("it ends after the first bytes"));
    };
    let length = read_footer_length(trailer).map_err(|_| damaged("it has no footer"))?;
    let end = file.len() - TRAILER;
    end.checked_sub(length).map(|start| &file[start..end]).ok_or_else(|| damaged("its footer is longer than the file"))
}

fn bytes_of(file: &Buffer, block: &Block) -> Result<Buffer, Damage> {
    let start = usize::try_from(block.offset()).ok();
    let length = usize::try_from(block.bodyLength()).ok().zip(usize::try_from(block.metaDataLength()).ok());
    let length = length.and_then(|(body, metadata)| body.checked_add(metadata));
    let inside =
        start.zip(length).filter(|(start, length)| start.checked_add(*length).is_some_and(|end| end <= file.len()));
    let (start, length) = inside.ok_or_else(|| damaged("a block lies outside the file"))?;
    Ok(file.slice_with_length(start, length))
}

fn decode_stream(mut stream: Buffer) -> Result<Decoded, Damage> {
    let mut decoder = StreamDecoder::new();
    let mut batches = Vec::new();
    while !stream.is_empty() {
        batches.extend(decoder.decode(&mut stream).map_err(|error| reason(&error))?);
    }
    decoder.finish().map_err(damaged)?;
    let schema = decoder.schema().ok_or_else(|| damaged("it has no schema"))?;
    Ok((schema, batches))
}

fn reason(error: &arrow_schema::ArrowError) -> Damage {
    let text = error.to_string();
    if text.contains("compress") { Damage::Compressed } else { damaged(text) }
}

fn damaged(what: impl std::fmt::Display) -> Damage {
    Damage::Refused(Error::schema(format!(
        "the Arrow IPC data is cut short or damaged: {what}; write it again, or read the other segments of the run"
    )))
}
