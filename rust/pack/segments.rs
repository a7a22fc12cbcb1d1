//! The columns that packed batches have by segment: where it is, whose it is, and what it goes on from.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};

use super::Packing;
use crate::Result;
use crate::arrow::{list_column, offsets};

/// `cu_seqlens`, `seq_lens`, `row` and `offset`, and of trees `segment_parent`, `leaf_row` and `leaf_segment`; a padding
/// tail is one more segment, of row -1.
pub(super) fn segments(packing: &Packing, bins: &Range<usize>) -> Result<Vec<ArrayRef>> {
    let mut lists: [Lists; 7] = Default::default();
    for bin in bins.clone() {
        let rows: Vec<i32> = packing.segments(bin).map(|kept| kept.row as i32).collect();
        let forest = packing.forest(bin);
        let nodes = forest.nodes.iter().map(|node| (rows[node.row as usize], node.start, node.end, node.parent));
        let padding = Some(packing.padding(bin)).filter(|padding| *padding > 0).map(|length| (-1, 0, length, -1));
        let [ends, lengths, row, offset, parent, leaf_row, leaf] = &mut lists;
        let mut total = 0;
        ends.values.push(0);
        for (owner, start, end, above) in nodes.chain(padding) {
            total += (end - start) as i32;
            ends.values.push(total);
            lengths.values.push((end - start) as i32);
            row.values.push(owner);
            offset.values.push(start as i32);
            parent.values.push(above);
        }
        leaf_row.values.extend(rows);
        leaf.values.extend(forest.leaves.iter().map(|leaf| *leaf as i32));
        lists.iter_mut().for_each(Lists::close);
    }
    let given = if packing.columns.tree { 7 } else { 4 };
    lists.into_iter().take(given).map(Lists::finish).collect()
}

/// A list column of int32 that grows list by list.
#[derive(Default)]
struct Lists {
    values: Vec<i32>,
    counts: Vec<usize>,
    closed: usize,
}

impl Lists {
    fn close(&mut self) {
        self.counts.push(self.values.len() - self.closed);
        self.closed = self.values.len();
    }

    fn finish(self) -> Result<ArrayRef> {
        list_column(Arc::new(Int32Array::from(self.values)), offsets(self.counts.into_iter())?, None)
    }
}
