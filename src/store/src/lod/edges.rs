//! Edges by where they begin, so that those of one operation are found without an index, whose rows
//! would have to be sorted at the end of a run.
//!
//! The edges that begin at 1,024 successive issue indexes are one row: a list of variable-length
//! numbers, three an edge, in the order of `from_op`, `to_op`, kind and tier: the distance of
//! `from_op` from the one before it (for the first: from the begin of the block), the distance of
//! `to_op` from `from_op`, both in zigzag encoding (doubled; the bits of a negative distance are
//! inverted), and the kind times 2 plus the tier.

use super::detail::{read, straight, turned, write};
use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;

/// Bits of `from_op` that differ within a block.
const BITS: u32 = 10;

/// An edge as plain numbers, compared in the order of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlainEdge {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) kind: i64,
    pub(crate) tier: i64,
}

/// Blocks in the making.
#[derive(Debug, Default)]
pub(super) struct Edges {
    blocks: FxHashMap<u64, Block>,
}

/// Edges in the order in which they came.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    last: PlainEdge,
    is_sorted: bool,
}

fn put(bytes: &mut Vec<u8>, before: u64, edge: PlainEdge) {
    write(bytes, turned(edge.from.wrapping_sub(before)));
    write(bytes, turned(edge.to.wrapping_sub(edge.from)));
    write(bytes, (edge.kind << 1 | edge.tier) as u64);
}

/// The edges of a block that begins at `before`.
fn unpack(mut bytes: &[u8], mut before: u64) -> impl Iterator<Item = PlainEdge> {
    std::iter::from_fn(move || {
        let from = before.wrapping_add(straight(read(&mut bytes)?));
        let to = from.wrapping_add(straight(read(&mut bytes)?));
        let code = read(&mut bytes)? as i64;
        before = from;
        Some(PlainEdge { from, to, kind: code >> 1, tier: code & 1 })
    })
}

impl Edges {
    pub(super) fn push(&mut self, edge: PlainEdge) {
        let block = edge.from >> BITS;
        let begin = block << BITS;
        let first = PlainEdge { from: begin, to: 0, kind: 0, tier: 0 };
        let empty = || Block { bytes: Vec::new(), last: first, is_sorted: true };
        let block = self.blocks.entry(block).or_insert_with(empty);
        put(&mut block.bytes, block.last.from, edge);
        block.is_sorted &= block.last <= edge;
        block.last = edge;
    }

    /// Reads the edges.
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut edges = Self::default();
        let mut statement = connection.prepare("SELECT from_op, to_op, kind, tier FROM edge")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            edges.push(PlainEdge {
                from: row.get::<_, i64>(0)? as u64,
                to: row.get::<_, i64>(1)? as u64,
                kind: row.get(2)?,
                tier: row.get(3)?,
            });
        }
        Ok(edges)
    }

    /// Fills the table.
    pub(super) fn insert(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut blocks: Vec<_> = self.blocks.into_iter().collect();
        blocks.sort_unstable_by_key(|&(block, _)| block);
        let mut insert = connection.prepare("INSERT INTO lod_edge VALUES (?, ?)")?;
        let mut edges = Vec::new();
        for (block, Block { mut bytes, is_sorted, .. }) in blocks {
            if !is_sorted {
                let begin = block << BITS;
                edges.extend(unpack(&bytes, begin));
                edges.sort_unstable();
                bytes.clear();
                let mut before = begin;
                for edge in edges.drain(..) {
                    put(&mut bytes, before, edge);
                    before = edge.from;
                }
            }
            insert.execute(params![block as i64, bytes])?;
        }
        Ok(())
    }
}

/// The edges that begin at an operation and end at another one, at most `most`, in the order of where
/// they end. `None` where the trace has no blocks.
pub(crate) fn outgoing(
    connection: &Connection,
    from: u64,
    most: usize,
) -> rusqlite::Result<Option<Vec<PlainEdge>>> {
    // Earlier schemas do not have the table.
    let Ok(mut statement) = connection.prepare_cached("SELECT edges FROM lod_edge WHERE block = ?")
    else {
        return Ok(None);
    };
    let bytes: Option<Vec<u8>> =
        statement.query_row([(from >> BITS) as i64], |row| row.get(0)).optional()?;
    let bytes = bytes.unwrap_or_default();
    let all = unpack(&bytes, from >> BITS << BITS);
    let of_it = all.skip_while(|e| e.from < from).take_while(|e| e.from == from);
    Ok(Some(of_it.filter(|e| e.to != e.from).take(most).collect()))
}
