//! Directed graphs and their transitive closure.

/// A node, by number.
pub(crate) type Node = usize;

/// Nodes and edges; several edges between the same nodes do no harm.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    nodes: usize,
    edges: Vec<(Node, Node)>,
}

impl Graph {
    pub(crate) fn node(&mut self) -> Node {
        self.nodes += 1;
        self.nodes - 1
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes
    }

    pub(crate) fn edge(&mut self, from: Node, to: Node) {
        assert_ne!(from, to, "nothing happens before itself");
        self.edges.push((from, to));
    }

    /// Warshall's algorithm.
    pub(crate) fn closure(&self) -> Reachability {
        let words = self.nodes.div_ceil(64);
        let mut rows = vec![vec![0u64; words]; self.nodes];
        for &(from, to) in &self.edges {
            rows[from][to / 64] |= 1 << (to % 64);
        }
        for middle in 0..self.nodes {
            let beyond = rows[middle].clone();
            for row in &mut rows {
                if row[middle / 64] >> (middle % 64) & 1 == 1 {
                    for (word, more) in row.iter_mut().zip(&beyond) {
                        *word |= more;
                    }
                }
            }
        }
        Reachability(rows)
    }
}

/// Which nodes can be reached from which.
#[derive(Clone, Debug)]
pub(crate) struct Reachability(Vec<Vec<u64>>);

impl Reachability {
    /// Whether a path leads from `first` to `second`.
    pub(crate) fn happens_before(&self, first: Node, second: Node) -> bool {
        self.0[first][second / 64] >> (second % 64) & 1 == 1
    }
}
