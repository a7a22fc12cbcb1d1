//! Rows that share prefixes as nodes: runs of tokens between branches.

/// A run of tokens that the same rows share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The first of the rows that hold it.
    pub row: u32,
    /// Where it begins in the row.
    pub start: u32,
    /// Where it ends in the row.
    pub end: u32,
    /// The node it goes on from; -1 of a root.
    pub parent: i32,
}

/// The nodes of some rows, in depth-first order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Forest {
    /// The nodes; their tokens stand one after the other.
    pub nodes: Vec<Node>,
    /// The node that each row ends in.
    pub leaves: Vec<u32>,
}

/// What a row adds: its tokens from `start` on, behind the tokens up to there of the row `parent`.
struct Run {
    start: u32,
    end: u32,
    parent: Option<usize>,
    /// Where others leave it.
    cuts: Vec<u32>,
    first_node: u32,
}

impl Forest {
    /// The nodes of rows in lexicographic order, from what each shares with the one before and its length.
    pub fn new(rows: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        // The runs that the tokens of the last row stand in, each with the place where it takes over.
        let mut path: Vec<(u32, usize)> = Vec::new();
        for (start, end) in rows {
            let row = runs.len();
            while path.last().is_some_and(|(taken, _)| *taken >= start) {
                path.pop();
            }
            let parent = path.last().map(|(_, run)| *run);
            if let Some(parent) = parent {
                runs[parent].cuts.push(start);
            }
            if start < end {
                path.push((start, row));
            }
            runs.push(Run { start, end, parent, cuts: Vec::new(), first_node: 0 });
        }
        Self::cut(runs)
    }

    fn cut(mut runs: Vec<Run>) -> Self {
        let mut forest = Self::default();
        for row in 0..runs.len() {
            let parent = runs[row].parent.map_or(-1, |parent| runs[parent].node_before(runs[row].start));
            let run = &mut runs[row];
            run.cuts.retain(|cut| (run.start + 1..run.end).contains(cut));
            run.cuts.sort_unstable();
            run.cuts.dedup();
            run.first_node = forest.nodes.len() as u32;
            let mut node = Node { row: row as u32, start: run.start, end: run.start, parent };
            for end in run.cuts.iter().copied().chain([run.end]).filter(|end| *end > run.start) {
                node = Node { start: node.end, end, ..node };
                forest.nodes.push(node);
                node.parent = forest.nodes.len() as i32 - 1;
            }
            forest.leaves.push(node.parent.max(0) as u32);
        }
        forest
    }
}

impl Run {
    /// The node that ends at `place`.
    fn node_before(&self, place: u32) -> i32 {
        (self.first_node + self.cuts.partition_point(|cut| *cut < place) as u32) as i32
    }
}
