//! Edges by where they begin, so that those of one operation are found without an index, whose rows
//! would have to be sorted at the end of a run.
//!
//! The edges that begin at 1,024 successive issue indexes are one row: a list of variable-length
//! numbers, three an edge, in the order of `from_op`, `to_op`, kind and tier: the distance of
//! `from_op` from the one before it (for the first: from the begin of the block), the distance of
//! `to_op` from `from_op`, both in zigzag encoding (doubled; the bits of a negative distance are
//! inverted), and the kind times 2 plus the tier.

use super::detail::{read, straight, turned, write};
use super::spool;
use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::FxHashMap;

/// Bits of `from_op` that differ within a block.
const BITS: u32 = 10;

/// Blocks in memory from which on the older ones are given out, how many of the newest stay then, and
/// edges from which on those do not stay either.
const MOST_BLOCKS: usize = 128;
const NEWEST: u64 = 64;
const MOST_EDGES: usize = if cfg!(test) { 1 << 13 } else { 1 << 16 };

/// An edge as plain numbers, compared in the order of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlainEdge {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) kind: i64,
    pub(crate) tier: i64,
}

/// A row of `lod_edge`.
pub(super) type EdgeRow = (i64, Vec<u8>);

/// Blocks in the making.
#[derive(Debug, Default)]
pub(super) struct Edges {
    blocks: FxHashMap<u64, Block>,
    /// Edges in them.
    count: usize,
    /// Blocks below this one were given out.
    given: u64,
    /// Edges that came for these afterwards, until the end.
    late: Option<Connection>,
}

/// Edges in the order in which they came.
#[derive(Debug)]
struct Block {
    bytes: Vec<u8>,
    last: PlainEdge,
    is_sorted: bool,
    count: usize,
}

impl Block {
    /// As it is stored.
    fn finish(mut self, block: u64) -> EdgeRow {
        if !self.is_sorted {
            let begin = block << BITS;
            self.bytes = packed(begin, unpack(&self.bytes, begin).collect());
        }
        (block as i64, self.bytes)
    }
}

fn packed(begin: u64, mut edges: Vec<PlainEdge>) -> Vec<u8> {
    edges.sort_unstable();
    let (mut bytes, mut before) = (Vec::new(), begin);
    for edge in edges {
        put(&mut bytes, before, edge);
        before = edge.from;
    }
    bytes
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
        let empty = || Block { bytes: Vec::new(), last: first, is_sorted: true, count: 0 };
        let block = self.blocks.entry(block).or_insert_with(empty);
        put(&mut block.bytes, block.last.from, edge);
        block.is_sorted &= block.last <= edge;
        block.last = edge;
        block.count += 1;
        self.count += 1;
    }

    /// Rows that can be inserted before the end: of blocks to which hardly any edge comes any more.
    ///
    /// # Errors
    /// When what came late cannot be put away.
    pub(super) fn take_older(&mut self) -> rusqlite::Result<Vec<EdgeRow>> {
        if self.blocks.len() <= MOST_BLOCKS && self.count <= MOST_EDGES {
            return Ok(Vec::new());
        }
        let newest = self.blocks.keys().copied().max().unwrap_or_default();
        let stays = newest.saturating_sub(NEWEST - 1);
        let staying = self.blocks.iter().filter(|&(&block, _)| block >= stays);
        let count: usize = staying.map(|(_, block)| block.count).sum();
        self.take_below(if count > MOST_EDGES / 2 { newest + 1 } else { stays })
    }

    fn take_below(&mut self, end: u64) -> rusqlite::Result<Vec<EdgeRow>> {
        let (mut rows, given) = (Vec::new(), self.given);
        let mut late = Vec::new();
        for (number, block) in self.blocks.extract_if(|&number, _| number < end) {
            self.count -= block.count;
            if number < given {
                late.push((number, block))
            } else {
                rows.push(block.finish(number))
            }
        }
        self.given = given.max(end);
        late.sort_unstable_by_key(|&(number, _)| number);
        self.put_away(late)?;
        rows.sort_unstable_by_key(|&(block, _)| block);
        Ok(rows)
    }

    fn put_away(&mut self, blocks: Vec<(u64, Block)>) -> rusqlite::Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let late = match self.late.take() {
            Some(late) => late,
            None => spool::open(
                "CREATE TABLE late (block INTEGER, part INTEGER PRIMARY KEY, edges BLOB);
                 CREATE INDEX late_block ON late (block)",
            )?,
        };
        for (block, Block { bytes, .. }) in blocks {
            late.prepare_cached("INSERT INTO late (block, edges) VALUES (?, ?)")?
                .execute(params![block as i64, bytes])?;
        }
        self.late = Some(late);
        Ok(())
    }

    /// Edges in memory.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.count
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

    /// Fills the table, in which the rows given out stand.
    pub(super) fn insert(mut self, connection: &Connection) -> rusqlite::Result<()> {
        let end = self.blocks.keys().copied().max().map_or(0, |newest| newest + 1);
        insert(connection, &self.take_below(end)?)?;
        let Some(late) = self.late else { return Ok(()) };
        let mut blocks = late.prepare("SELECT DISTINCT block FROM late ORDER BY block")?;
        let mut parts = late.prepare("SELECT edges FROM late WHERE block = ?")?;
        let mut stored = connection.prepare("SELECT edges FROM lod_edge WHERE block = ?")?;
        let mut blocks = blocks.query([])?;
        while let Some(row) = blocks.next()? {
            let block: i64 = row.get(0)?;
            let begin = (block as u64) << BITS;
            let mut edges = Vec::new();
            for part in [&mut stored, &mut parts] {
                let mut rows = part.query([block])?;
                while let Some(row) = rows.next()? {
                    edges.extend(unpack(row.get_ref(0)?.as_blob()?, begin));
                }
            }
            insert(connection, &[(block, packed(begin, edges))])?;
        }
        Ok(())
    }
}

/// Puts rows in, or in the place of those of the same blocks.
pub(super) fn insert(connection: &Connection, rows: &[EdgeRow]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO lod_edge VALUES (?, ?)")?;
    rows.iter().try_for_each(|(block, edges)| insert.execute(params![block, edges]).map(drop))
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
