//! Lists of uses: for each allocation the operations and the graphs that touch it; for each graph
//! its launches. With these lists the cost of an allocation's history follows the length of the
//! answer, not the length of the trace.
//!
//! A list is kept in pieces of about [`PIECE`] bytes, ascending numbers as distances of seven bits a
//! byte: one or two bytes for each operation that touches an allocation, where an index of SQLite
//! would take nine. Measured: 2.1 bytes an access, 2.3% of a trace with an access an operation.

use super::detail::{read, straight, turned, write};
use rusqlite::{Connection, params};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use streamsan_model::OpSeq;

/// Bytes from which on a piece is full.
const PIECE: usize = 500;

/// Full pieces that are given out at once.
const RUN: usize = if cfg!(test) { 16 } else { 256 };

/// Allocations below this number have their lists by it: a recording numbers them from 0.
const DENSE: u32 = 1 << 22;

/// The subject of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Operations that touch an allocation themselves.
    OperationsOnAllocation,
    /// Operations that launch a graph.
    LaunchesOfGraph,
    /// Graphs whose nodes touch an allocation.
    GraphsOnAllocation,
    /// The graphs that contain a graph.
    GraphsAroundGraph,
}

#[derive(Debug, Default)]
struct List {
    first: u64,
    last: Option<u64>,
    bytes: Vec<u8>,
}

/// A row of `lod_use`.
pub(super) type UseRow = (i64, i64, i64, Vec<u8>);

/// Lists in the making.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Operations on allocations, found by the allocation's number, which is dense: most of all.
    dense: Vec<List>,
    lists: FxHashMap<(i64, i64), List>,
    full: Vec<UseRow>,
    late: Late,
}

/// Operations whose accesses were replaced: in the order in which that came, the distance of the
/// operation from the one before, and how many allocations it touches, and which.
#[derive(Debug, Default)]
struct Late {
    bytes: Vec<u8>,
    last: u64,
}

impl List {
    /// Adds a number, which is not lower than the one before it.
    fn push(&mut self, kind: i64, id: i64, number: u64, full: &mut Vec<UseRow>) {
        match self.last {
            Some(last) if last == number => return,
            Some(last) => write(&mut self.bytes, number - last),
            None => self.first = number,
        }
        self.last = Some(number);
        if self.bytes.len() >= PIECE {
            full.extend(self.take(kind, id));
        }
    }

    fn take(&mut self, kind: i64, id: i64) -> Option<UseRow> {
        self.last.take()?;
        Some((kind, id, self.first as i64, std::mem::take(&mut self.bytes)))
    }
}

impl Uses {
    pub(super) fn push(&mut self, kind: Kind, id: i64, number: u64) {
        let key = (kind as i64, id);
        self.lists.entry(key).or_default().push(key.0, id, number, &mut self.full);
    }

    /// An access by operation `g`; accesses come by their operation.
    pub(super) fn push_access(&mut self, g: u64, allocation: i64) {
        let kind = Kind::OperationsOnAllocation;
        match usize::try_from(allocation) {
            Ok(place) if allocation < i64::from(DENSE) => {
                let list = super::scan::slot(&mut self.dense, place);
                list.push(kind as i64, allocation, g, &mut self.full);
            }
            _ => self.push(kind, allocation, g),
        }
    }

    /// Puts other accesses in place of those of operation `g`, in any order of operations.
    pub(super) fn replace_accesses(&mut self, g: u64, allocations: &[i64]) {
        let late = &mut self.late;
        write(&mut late.bytes, turned(g.wrapping_sub(late.last)));
        late.last = g;
        write(&mut late.bytes, allocations.len() as u64);
        allocations.iter().for_each(|&id| write(&mut late.bytes, id as u64));
    }

    /// Reads the accesses.
    pub(super) fn read_accesses(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT id, allocation FROM access ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let g = (row.get::<_, i64>(0)? >> crate::schema::ACCESS_BITS) as u64;
            self.push_access(g, row.get(1)?);
            if self.full.len() >= RUN {
                insert(connection, &mut self.full)?;
                self.full.clear();
            }
        }
        Ok(())
    }

    /// Full pieces, if there are many: they can be inserted before the end.
    pub(super) fn take_full(&mut self) -> Vec<UseRow> {
        if self.full.len() < RUN { Vec::new() } else { std::mem::take(&mut self.full) }
    }

    /// Pieces in memory that are full.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.full.len()
    }

    /// Reads which graphs touch what, and fills the table, in which the pieces given out stand.
    pub(super) fn insert(mut self, connection: &Connection) -> rusqlite::Result<()> {
        for (kind, sql) in [
            (
                Kind::GraphsOnAllocation,
                "SELECT DISTINCT allocation, graph FROM graph_access ORDER BY allocation, graph",
            ),
            (
                Kind::GraphsAroundGraph,
                "SELECT DISTINCT body, graph FROM graph_body ORDER BY body, graph",
            ),
        ] {
            // The first schemas had no graphs.
            let Ok(mut statement) = connection.prepare(sql) else { continue };
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                self.push(kind, row.get(0)?, row.get::<_, i64>(1)? as u64);
            }
        }
        let kind = Kind::OperationsOnAllocation as i64;
        let mut rows = self.full;
        rows.extend(self.dense.into_iter().zip(0..).filter_map(|(mut l, id)| l.take(kind, id)));
        for ((kind, id), mut list) in self.lists {
            rows.extend(list.take(kind, id));
        }
        insert(connection, &mut rows)?;
        let late = self.late.read();
        if late.is_empty() { Ok(()) } else { replace(connection, &late) }
    }
}

/// Inserts rows; in the order of their key they go in fast.
pub(super) fn insert(connection: &Connection, rows: &mut [UseRow]) -> rusqlite::Result<()> {
    rows.sort_unstable_by_key(|&(kind, id, first, _)| (kind, id, first));
    let mut insert = connection.prepare_cached("INSERT INTO lod_use VALUES (?, ?, ?, ?)")?;
    rows.iter().try_for_each(|(kind, id, first, bytes)| {
        insert.execute(params![kind, id, first, bytes]).map(drop)
    })
}

/// Makes the lists of operations on allocations again, with other accesses of some operations.
fn replace(connection: &Connection, late: &BTreeMap<u64, Vec<i64>>) -> rusqlite::Result<()> {
    let kind = Kind::OperationsOnAllocation as i64;
    let mut added: Vec<(i64, u64)> =
        late.iter().flat_map(|(&g, ids)| ids.iter().map(move |&id| (id, g))).collect();
    added.sort_unstable();
    added.dedup();
    let mut added = added.into_iter().peekable();
    // Lists may be long: they go from table to table piece by piece.
    connection
        .execute_batch("CREATE TEMP TABLE use_again (id INTEGER, first INTEGER, numbers BLOB)")?;
    {
        let mut select = connection
            .prepare("SELECT id, first, numbers FROM lod_use WHERE kind = ? ORDER BY id, first")?;
        let mut put = connection.prepare("INSERT INTO temp.use_again VALUES (?, ?, ?)")?;
        let mut put = |full: &mut Vec<UseRow>| -> rusqlite::Result<()> {
            full.drain(..).try_for_each(|(_, id, first, bytes)| {
                put.execute(params![id, first, bytes]).map(drop)
            })
        };
        let mut stored = select.query([kind])?;
        let mut next = || -> rusqlite::Result<Option<(i64, Vec<u64>)>> {
            let Some(row) = stored.next()? else { return Ok(None) };
            let mut numbers = Vec::new();
            unpack(row.get::<_, i64>(1)? as u64, row.get_ref(2)?.as_blob()?, &mut numbers);
            Ok(Some((row.get(0)?, numbers)))
        };
        let (mut piece, mut full) = (next()?, Vec::new());
        while let Some(id) =
            piece.iter().map(|piece| piece.0).chain(added.peek().map(|added| added.0)).min()
        {
            let mut list = List::default();
            while let Some((_, numbers)) = piece.take_if(|piece| piece.0 == id) {
                for number in numbers.into_iter().filter(|number| !late.contains_key(number)) {
                    while let Some((_, g)) = added.next_if(|&(of, g)| of == id && g < number) {
                        list.push(kind, id, g, &mut full);
                    }
                    list.push(kind, id, number, &mut full);
                }
                put(&mut full)?;
                piece = next()?;
            }
            while let Some((_, g)) = added.next_if(|added| added.0 == id) {
                list.push(kind, id, g, &mut full);
            }
            full.extend(list.take(kind, id));
            put(&mut full)?;
        }
    }
    connection.execute("DELETE FROM lod_use WHERE kind = ?", [kind])?;
    connection.execute(
        "INSERT INTO lod_use SELECT ?, id, first, numbers FROM temp.use_again ORDER BY rowid",
        [kind],
    )?;
    connection.execute_batch("DROP TABLE temp.use_again")
}

impl Late {
    /// The last values of each operation.
    fn read(self) -> BTreeMap<u64, Vec<i64>> {
        let (mut bytes, mut g) = (&self.bytes[..], 0u64);
        let mut all = BTreeMap::new();
        while let Some((step, count)) = read(&mut bytes).zip(read(&mut bytes)) {
            g = g.wrapping_add(straight(step));
            let ids = (0..count).filter_map(|_| read(&mut bytes)).map(|id| id as i64);
            all.insert(g, ids.collect());
        }
        all
    }
}

/// The numbers of a piece.
fn unpack(first: u64, mut bytes: &[u8], numbers: &mut Vec<u64>) {
    let mut number = first;
    numbers.push(number);
    while let Some(step) = read(&mut bytes) {
        number = number.saturating_add(step);
        numbers.push(number);
    }
}

/// Whether the trace has lists. An older one and one that is not finished have none.
pub(crate) fn are_there(connection: &Connection) -> bool {
    let there = connection
        .query_row("SELECT EXISTS (SELECT 1 FROM lod_use)", [], |row| row.get::<_, bool>(0));
    there.unwrap_or(false)
}

/// At most `most` numbers of a list, from `from` on, ascending.
pub(crate) fn list(
    connection: &Connection,
    kind: Kind,
    id: i64,
    from: u64,
    most: usize,
) -> rusqlite::Result<Vec<u64>> {
    let clip = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    // The piece before may reach beyond `from`.
    let mut statement = connection.prepare_cached(
        "SELECT first, numbers FROM lod_use WHERE kind = ?1 AND id = ?2 AND first >= \
         coalesce((SELECT max(first) FROM lod_use WHERE kind = ?1 AND id = ?2 AND first <= ?3), 0) \
         ORDER BY first",
    )?;
    let mut rows = statement.query(params![kind as i64, id, clip(from)])?;
    let mut numbers = Vec::new();
    while let Some(row) = rows.next()? {
        let mut number = row.get::<_, i64>(0)? as u64;
        let mut bytes = row.get_ref(1)?.as_blob()?;
        loop {
            if number >= from {
                numbers.push(number);
            }
            if numbers.len() == most {
                return Ok(numbers);
            }
            let Some(step) = read(&mut bytes) else { break };
            number = number.saturating_add(step);
        }
    }
    Ok(numbers)
}

/// The graphs whose launches touch an allocation, with the graphs in them that touch it themselves,
/// at most `most`.
pub(crate) fn graphs(
    connection: &Connection,
    allocation: i64,
    most: usize,
) -> rusqlite::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    for graph in list(connection, Kind::GraphsOnAllocation, allocation, 0, most)? {
        // A graph stands in few others, and in none that stands in it.
        let (mut around, mut next) = (vec![graph], 0);
        while next < around.len() && around.len() < most {
            let outer = list(connection, Kind::GraphsAroundGraph, around[next] as i64, 0, most)?;
            around.extend(outer.into_iter().filter(|g| !around.contains(g)).collect::<Vec<_>>());
            next += 1;
        }
        found.extend(around.into_iter().map(|outer| (outer, graph)));
    }
    found.truncate(most);
    Ok(found)
}

/// Launches of a graph, at most `most`, from `from` on.
pub(crate) fn launches(
    connection: &Connection,
    graph: u64,
    from: OpSeq,
    most: usize,
) -> rusqlite::Result<Vec<u64>> {
    list(connection, Kind::LaunchesOfGraph, graph as i64, from.0, most)
}
