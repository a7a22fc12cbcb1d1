//! Many texts, of which those are found that another text begins with.
//!
//! *Invariant*: a node is left by one byte only, the first in which the texts below it differ. The bytes between are not
//! looked at on the way; the texts at the end are compared whole.

/// The texts.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    edges: Vec<(u8, u32)>,
    /// The texts in a row, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// For each text, the longest other that it begins with.
    shorter: Vec<Option<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The place of the first byte in which the texts differ.
    place: u32,
    /// The text that ends there.
    text: Option<u32>,
    edges: (u32, u32),
}

impl Trie {
    /// A trie of texts, which are sorted and distinct.
    pub(super) fn new(texts: &[&[u8]]) -> Self {
        let mut end = 0;
        let ends = texts.iter().map(|text| {
            end += text.len() as u32;
            end
        });
        let ends = ends.collect();
        let mut trie =
            Self { nodes: Vec::new(), edges: Vec::new(), bytes: texts.concat(), ends, shorter: shorter(texts) };
        if !texts.is_empty() {
            trie.add(texts, 0, texts.len());
        }
        trie
    }

    /// Adds the node of a range of texts, and those below.
    fn add(&mut self, texts: &[&[u8]], mut low: usize, high: usize) -> u32 {
        let place = texts[low].iter().zip(texts[high - 1]).take_while(|(one, other)| one == other).count();
        let text = (texts[low].len() == place).then_some(low as u32);
        low += usize::from(text.is_some());
        let index = self.nodes.len();
        self.nodes.push(Node { place: place as u32, text, edges: (0, 0) });
        let mut edges = Vec::new();
        while low < high {
            let byte = texts[low][place];
            let end = low + texts[low..high].partition_point(|text| text[place] <= byte);
            edges.push((byte, self.add(texts, low, end)));
            low = end;
        }
        let first = self.edges.len() as u32;
        self.edges.extend(edges);
        self.nodes[index].edges = (first, self.edges.len() as u32);
        index as u32
    }

    /// The indices of the texts that `rest` begins with, the longest first, and the length of each.
    #[inline]
    pub(super) fn prefixes(&self, rest: &[u8]) -> impl Iterator<Item = (usize, usize)> {
        let longest = self.deepest(rest);
        let candidates = std::iter::successors(longest, |text| self.shorter[*text as usize]);
        let content = |text: u32| (text as usize, self.text(text as usize));
        candidates.map(content).filter(|(_, text)| rest.starts_with(text)).map(|(index, text)| (index, text.len()))
    }

    /// The longest text that `rest` may begin with: no other can but those that this one begins with.
    #[inline]
    fn deepest(&self, rest: &[u8]) -> Option<u32> {
        let mut node = self.nodes.first()?;
        let mut deepest = None;
        loop {
            deepest = node.text.or(deepest);
            let Some(byte) = rest.get(node.place as usize) else { return deepest };
            let edges = &self.edges[node.edges.0 as usize..node.edges.1 as usize];
            let Some((_, next)) = edges.iter().find(|edge| edge.0 == *byte) else { return deepest };
            node = &self.nodes[*next as usize];
        }
    }

    #[inline]
    fn text(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

/// For each of the sorted texts, the longest other that it begins with.
fn shorter(texts: &[&[u8]]) -> Vec<Option<u32>> {
    let mut open: Vec<u32> = Vec::new();
    let mut shorter = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        while open.last().is_some_and(|last| !text.starts_with(texts[*last as usize])) {
            open.pop();
        }
        shorter.push(open.last().copied());
        open.push(index as u32);
    }
    shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_that_another_begins_with_is_found() {
        let mut texts: Vec<String> =
            ["a", "ab", "abcd", "abce", "b", "bbb", "<|end|>", "<|im_end|>", "<|im_start|>", "<"]
                .map(str::to_owned)
                .to_vec();
        texts.extend((0..300).map(|number| format!("u{number}")));
        texts.sort();
        let slices: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let trie = Trie::new(&slices);
        let others =
            ["", "abcx", "abcd!", "bb", "bbbb", "<|im_startx", "<|im_start|", "<x", "c", "u1234", "u29", "u3000"];
        for rest in others.into_iter().chain(texts.iter().map(String::as_str)) {
            let mut expected: Vec<usize> = (0..texts.len()).filter(|index| rest.starts_with(&texts[*index])).collect();
            expected.reverse();
            let found: Vec<usize> = trie.prefixes(rest.as_bytes()).map(|(index, _)| index).collect();
            assert_eq!(found, expected, "{rest:?}");
        }
    }

    #[test]
    fn no_texts_are_never_found() {
        assert_eq!(Trie::new(&[]).prefixes(b"a").count(), 0);
    }
}
