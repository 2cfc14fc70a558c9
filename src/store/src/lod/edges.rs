//! Edges by where they begin, so that those of one operation are found without an index, whose rows
//! would have to be sorted at the end of a run.
//!
//! The edges that begin at 1,024 successive issue indexes are one row: a list of variable-length
//! numbers, three an edge, in the order of `from_op`, `to_op`, kind and tier: `from_op` less the one
//! before it (the first one: less the begin of the block), `to_op` less `from_op` (doubled; of a
//! negative distance all bits but the lowest are turned), and the kind times 2 plus the tier.

use super::detail::{read, write};
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

/// Blocks in the making: their edges in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Edges {
    blocks: FxHashMap<u64, Vec<u8>>,
}

fn put(bytes: &mut Vec<u8>, before: u64, edge: PlainEdge) {
    let distance = edge.to.wrapping_sub(edge.from) as i64;
    write(bytes, edge.from - before);
    write(bytes, (distance << 1 ^ distance >> 63) as u64);
    write(bytes, (edge.kind << 1 | edge.tier) as u64);
}

fn take(bytes: &mut &[u8], before: u64) -> Option<PlainEdge> {
    let from = before.wrapping_add(read(bytes)?);
    let distance = read(bytes)?;
    let distance = (distance >> 1) as i64 ^ -((distance & 1) as i64);
    let code = read(bytes)? as i64;
    Some(PlainEdge {
        from,
        to: from.wrapping_add(distance as u64),
        kind: code >> 1,
        tier: code & 1,
    })
}

impl Edges {
    pub(super) fn push(&mut self, edge: PlainEdge) {
        let block = edge.from >> BITS;
        put(self.blocks.entry(block).or_default(), block << BITS, edge);
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
        let (mut edges, mut packed) = (Vec::new(), Vec::new());
        for (block, bytes) in blocks {
            let (mut rest, begin) = (&bytes[..], block << BITS);
            edges.extend(std::iter::from_fn(|| take(&mut rest, begin)));
            edges.sort_unstable();
            let mut before = begin;
            for edge in edges.drain(..) {
                put(&mut packed, before, edge);
                before = edge.from;
            }
            insert.execute(params![block as i64, packed])?;
            packed.clear();
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
    let (mut rest, mut before) = (&bytes[..], from >> BITS << BITS);
    let all = std::iter::from_fn(|| {
        let edge = take(&mut rest, before)?;
        before = edge.from;
        Some(edge)
    });
    let of_it = all.skip_while(|e| e.from < from).take_while(|e| e.from == from);
    Ok(Some(of_it.filter(|e| e.to != e.from).take(most).collect()))
}
