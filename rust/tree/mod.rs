//! Prefix trees over literal tokens: rows that begin alike hold their common tokens once.
//!
//! *Invariant*: the tokens of a row are the tokens of the nodes from its root to its leaf, in order; a node has one
//! parent; nodes stand in depth-first order. Rows of one tree are neighbours in lexicographic order, and of three rows in
//! that order the outer two share what both pairs of neighbours share.

mod forest;
mod units;

use rayon::prelude::*;

pub use forest::{Forest, Node};
pub use units::{Unit, units};

use crate::{TokenId, threads};

/// When two rows share a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// When all tokens up to it are equal: every token stands once, and the last one before a branch has several next
    /// tokens.
    Whole,
    /// When the token after it is equal too: every token has one next token, and each branch begins with a copy of the
    /// token it leaves from.
    SingleNext,
    /// When the rows have one prompt: its tokens but the last, with which each row begins on its own. Trees have two
    /// levels, and no sampled token is shared. What is compared is the prompts.
    Prompt,
}

impl Sharing {
    /// How many tokens two rows share, or two prompts.
    pub fn shared(self, left: &[TokenId], right: &[TokenId]) -> usize {
        if self == Self::Prompt {
            return if left == right { left.len().saturating_sub(1) } else { 0 };
        }
        let common = common_prefix(left, right);
        match self {
            Self::SingleNext if left.len() != common || right.len() != common => common.saturating_sub(1),
            _ => common,
        }
    }
}

/// The rows in lexicographic order; equal rows by index.
pub fn order(rows: &[&[TokenId]]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    let compared = |left: &u32, right: &u32| compare(rows[*left as usize], rows[*right as usize]).then(left.cmp(right));
    if threads::repaid(rows.iter().map(|row| row.len()).sum()) {
        threads::shared(|| order.par_sort_by(compared));
    } else {
        order.sort_by(compared);
    }
    order
}

fn compare(left: &[TokenId], right: &[TokenId]) -> std::cmp::Ordering {
    let common = common_prefix(left, right);
    left.get(common).cmp(&right.get(common)) // a row that ends comes first: `None` is least
}

/// The number of first tokens that are equal.
pub fn common_prefix(left: &[TokenId], right: &[TokenId]) -> usize {
    const BLOCK: usize = 64; // compared as memory, many times faster than token by token
    let blocks = left.chunks_exact(BLOCK).zip(right.chunks_exact(BLOCK)).take_while(|(left, right)| left == right);
    let start = BLOCK * blocks.count();
    start + left[start..].iter().zip(&right[start..]).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<Vec<TokenId>>> {
        prop::collection::vec(prop::collection::vec(0_i32..3, 1..12), 1..12)
    }

    /// Lexicographically sorted rows with what each shares with the one before.
    fn sorted(rows: &[Vec<TokenId>], sharing: Sharing) -> Vec<(Vec<TokenId>, u32)> {
        let slices: Vec<&[TokenId]> = rows.iter().map(Vec::as_slice).collect();
        let sorted: Vec<&[TokenId]> = order(&slices).into_iter().map(|row| slices[row as usize]).collect();
        let from = |index: usize| if index == 0 { 0 } else { sharing.shared(sorted[index - 1], sorted[index]) as u32 };
        (0..sorted.len()).map(|index| (sorted[index].to_vec(), from(index))).collect()
    }

    proptest! {
        #[test]
        fn order_is_lexicographic(rows in rows()) {
            let ordered = sorted(&rows, Sharing::Whole);
            prop_assert!(ordered.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        }

        #[test]
        fn the_path_of_a_row_spells_the_row(rows in rows(), single in any::<bool>()) {
            let sharing = if single { Sharing::SingleNext } else { Sharing::Whole };
            let rows = sorted(&rows, sharing);
            let forest = Forest::new(rows.iter().map(|(row, from)| (*from, row.len() as u32)));
            for ((row, _), leaf) in rows.iter().zip(&forest.leaves) {
                let mut spelled: Vec<TokenId> = Vec::new();
                let mut node = Some(*leaf as usize);
                while let Some(index) = node {
                    let Node { row: owner, start, end, parent } = forest.nodes[index];
                    prop_assert!(start < end && parent < index as i32);
                    spelled.splice(0..0, rows[owner as usize].0[start as usize..end as usize].iter().copied());
                    node = usize::try_from(parent).ok();
                }
                prop_assert_eq!(&spelled, row);
            }
            let tokens: u32 = forest.nodes.iter().map(|node| node.end - node.start).sum();
            prop_assert_eq!(tokens, rows.iter().map(|(row, from)| row.len() as u32 - from).sum::<u32>());
        }

        #[test]
        fn a_single_next_token_is_single(rows in rows()) {
            let rows = sorted(&rows, Sharing::SingleNext);
            let forest = Forest::new(rows.iter().map(|(row, from)| (*from, row.len() as u32)));
            for (index, node) in forest.nodes.iter().enumerate() {
                let first = |node: &Node| rows[node.row as usize].0[node.start as usize];
                let mut next: Vec<_> =
                    forest.nodes.iter().filter(|child| child.parent == index as i32).map(first).collect();
                next.dedup();
                prop_assert!(next.len() < 2, "{node:?}");
            }
        }
    }
}
