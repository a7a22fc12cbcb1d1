//! Trajectories to packed batches: which rows, which bins, and the copies.
//!
//! *Invariant*: every token of every row is packed exactly once, or the row is named among those cut or left out; no bin
//! exceeds the budget; positions restart at each segment; a segment's first token carries no loss; `cu_seqlens` ends with
//! the number of tokens.

mod fill;
mod out;
mod pool;
mod segments;
mod select;
mod share;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use pool::Pool;
pub use select::{Overlong, Reason};

use crate::arrow::schema::{self, PackedColumns};
use crate::arrow::{Batch, View};
use crate::plan::{Plan, PlanOptions, Work, lower_bound, plan};
use crate::tree::{Forest, Sharing};
use crate::{Error, Result, TokenId, threads};
use select::Fate;

/// Three pages of nine columns: the one being filled, the one being read, and one that is still held.
const POOLED_BUFFERS: usize = 27;

/// So many bins at once repay the waking of a thread, and the output still fits a shared cache.
const BINS_PER_THREAD: usize = 4;

/// How trajectories are packed.
#[derive(Debug, Clone)]
pub struct PackOptions {
    /// The tokens of a bin, at most.
    pub token_budget: u32,
    /// The ranks that work at the same time.
    pub ranks: u32,
    /// What happens to rows longer than the budget.
    pub overlong: Overlong,
    /// The tokens of a bin become a multiple of this.
    pub align: u32,
    /// The id of padding.
    pub pad_token_id: TokenId,
    /// The rows of a bin, at most.
    pub max_segments: Option<u32>,
    /// The cost of a row.
    pub work: RowWork,
    /// Whether rows that begin alike hold their common tokens once.
    pub sharing: Option<Sharing>,
}

/// Where the cost of a row comes from.
#[derive(Debug, Clone)]
pub enum RowWork {
    /// From its packed length.
    Model(Work),
    /// Given, one value a row of the batch.
    Given(Vec<f64>),
}

/// A row that is packed, and how many of its tokens.
#[derive(Debug, Clone, Copy)]
struct Kept {
    row: u32,
    length: u32,
    /// The first tokens that the row before it in the bin holds for it.
    from: u32,
}

/// What packing did.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The rows of the batch.
    pub rows: usize,
    /// The tokens that are packed, padding aside.
    pub tokens: u64,
    /// The tokens of padding.
    pub padding: u64,
    /// The fewest bins that could hold the tokens.
    pub lower_bound: usize,
    /// The longest row that is packed.
    pub longest: u32,
    /// Rows left out, with the reason and their tokens.
    pub left_out: Vec<(usize, Reason, usize)>,
    /// Rows cut, with the tokens kept and cut off.
    pub truncated: Vec<(usize, usize, usize)>,
    /// Segments whose first token lost its loss.
    pub loss_cleared: usize,
    /// The tokens that stand once for several rows: how many fewer there are than without sharing.
    pub shared: u64,
    /// Shared tokens that carry the loss of more than one row.
    pub merged: u64,
}

/// A batch, packed: the plan is made, bins are filled when they are asked for.
#[derive(Debug, Clone)]
pub struct Packing {
    batch: Batch,
    kept: Vec<Kept>,
    plan: Plan,
    columns: PackedColumns,
    schema: SchemaRef,
    options: PackOptions,
    report: Report,
    pool: Arc<Pool>,
}

impl Packing {
    /// Plans the packing of `batch`.
    pub fn new(batch: Batch, options: PackOptions) -> Result<Self> {
        let budget = usable_budget(&options)?;
        let fates = select::select(&batch, budget, options.overlong)?;
        let (mut kept, mut report) = sorted_out(&batch, &fates)?;
        let plan_options = PlanOptions { budget, max_segments: options.max_segments, ranks: options.ranks };
        let work = work(&options.work, &kept, batch.len())?;
        let mut columns = fill::columns(&batch, &kept)?;
        let plan = if let Some(sharing) = options.sharing {
            columns.tree = true;
            let plan = share::plan(&batch, &mut kept, &work, &options, plan_options, sharing, &mut report)?;
            columns.loss_weight |= report.merged > 0;
            plan
        } else {
            let lengths: Vec<u32> = kept.iter().map(|kept| kept.length).collect();
            report.lower_bound = lower_bound(&lengths, budget);
            plan(&lengths, &work, plan_options)?
        };
        let pool = Arc::new(Pool::new(POOLED_BUFFERS));
        let mut packing = Self { batch, kept, plan, columns, schema: schema::packed(columns), options, report, pool };
        packing.report.padding = (0..packing.bins()).map(|bin| u64::from(packing.padding(bin))).sum();
        Ok(packing)
    }

    /// The same packing over another pool.
    #[must_use]
    pub fn with_pool(mut self, pool: Arc<Pool>) -> Self {
        self.pool = pool;
        self
    }

    /// The number of bins, of all ranks.
    pub fn bins(&self) -> usize {
        self.plan.bins.len()
    }

    /// The plan; its rows are counted among those that are packed, see [`Packing::rows_of`].
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What packing did.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The schema of the packed table.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows of the batch that a bin holds.
    pub fn rows_of(&self, bin: usize) -> impl Iterator<Item = usize> {
        self.segments(bin).map(|kept| kept.row as usize)
    }

    /// Fills the given bins, in parallel: one row of `tokentape.packed` each.
    pub fn fill(&self, bins: Range<usize>) -> Result<RecordBatch> {
        if bins.start > bins.end || bins.end > self.bins() {
            return Err(Error::value(format!("bins {bins:?} are out of range: there are {}", self.bins())));
        }
        fill::fill(self, bins)
    }

    /// The range of bins, from `start` on, that is worth filling at once: enough for all threads, bounded in memory.
    pub fn page(&self, start: usize) -> Range<usize> {
        let most = (1 << 24) / self.options.token_budget.max(1) as usize;
        let wanted = BINS_PER_THREAD * threads::count();
        start..(start + wanted.min(most).max(1)).min(self.bins())
    }

    fn segments(&self, bin: usize) -> impl Iterator<Item = Kept> {
        self.plan.bins.get(bin).iter().map(|index| self.kept[*index as usize])
    }

    fn tokens(&self, bin: usize) -> u32 {
        self.segments(bin).map(|kept| kept.length - kept.from).sum()
    }

    /// The segments of a bin: whole rows, or the nodes of their trees.
    fn forest(&self, bin: usize) -> Forest {
        Forest::new(self.segments(bin).map(|kept| (kept.from, kept.length)))
    }

    /// The tokens of each bin, padding included.
    pub fn bin_tokens(&self) -> Vec<i32> {
        (0..self.bins()).map(|bin| (self.tokens(bin) + self.padding(bin)) as i32).collect()
    }

    /// The padding of a bin: up to a multiple of `align`; an empty bin gets some too, so that its rank has work.
    fn padding(&self, bin: usize) -> u32 {
        match self.tokens(bin) {
            0 => self.options.align,
            tokens => tokens.next_multiple_of(self.options.align) - tokens,
        }
    }

    fn views(&self) -> Result<Vec<(usize, View<'_>)>> {
        self.batch.views()
    }
}

fn usable_budget(options: &PackOptions) -> Result<u32> {
    if options.align == 0 || options.token_budget < options.align {
        return Err(Error::value(format!(
            "align={} must be at least 1 and not above token_budget={}",
            options.align, options.token_budget
        )));
    }
    if options.token_budget > i32::MAX as u32 {
        return Err(Error::value("token_budget is above 2147483647, more than cu_seqlens can count"));
    }
    Ok(options.token_budget / options.align * options.align)
}

fn sorted_out(batch: &Batch, fates: &[Fate]) -> Result<(Vec<Kept>, Report)> {
    let mut report = Report { rows: fates.len(), ..Report::default() };
    let mut kept = Vec::with_capacity(fates.len());
    for (start, view) in batch.views()? {
        for row in 0..view.len() {
            let tokens = view.token_ids.length(row);
            match fates[start + row] {
                Fate::LeftOut(reason) => report.left_out.push((start + row, reason, tokens)),
                Fate::Kept { length, cleared } => {
                    report.loss_cleared += usize::from(cleared);
                    report.tokens += u64::from(length);
                    report.longest = report.longest.max(length);
                    if (length as usize) < tokens {
                        report.truncated.push((start + row, length as usize, tokens - length as usize));
                    }
                    kept.push(Kept { row: (start + row) as u32, length, from: 0 });
                }
            }
        }
    }
    Ok((kept, report))
}

fn work(work: &RowWork, kept: &[Kept], rows: usize) -> Result<Vec<f64>> {
    match work {
        RowWork::Model(work) => Ok(kept.iter().map(|kept| work.of(kept.length)).collect()),
        RowWork::Given(values) if values.len() == rows => {
            Ok(kept.iter().map(|kept| values[kept.row as usize]).collect())
        }
        RowWork::Given(values) => Err(Error::value(format!("work has {} values for {rows} rows", values.len()))),
    }
}
