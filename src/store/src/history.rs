//! The history of one allocation.

use crate::lod::uses::{self, Kind};
use crate::reader::decode::Patterns;
use crate::row::access_ids;
use crate::{Error, Reader};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use streamsan_model::{Access, AllocationId, GraphId, History, OpSeq, StreamId, Use};

/// An access of the allocation: by which operation, and through which graph.
type Found = (OpSeq, Option<GraphId>, Access);

/// One more than is shown, to know whether there are more.
const MOST: usize = History::USES + 1;

impl Reader {
    /// The allocation's uses in issue order, at most [`History::USES`], and whether there are more.
    ///
    /// With the lists of a finished trace the cost follows the length of the answer. Without them
    /// (in a trace that is being recorded) the accesses are searched from the allocation's begin
    /// on, and launches of graphs are left out.
    pub(crate) fn uses(&self, id: AllocationId) -> Result<(Vec<Use>, bool), Error> {
        // Where there are none, they are made.
        drop(self.lod()?);
        let life =
            self.rows("SELECT allocated FROM lod_lifetime WHERE allocation = ?", [id.0], |row| {
                row.get::<_, Option<i64>>(0)
            })?;
        // A generation is touched from its allocation on, where that is known.
        let begin = OpSeq(life.first().copied().flatten().unwrap_or(0) as u64);
        let connection = self.connection();
        let find = || {
            let mut patterns = Patterns::new(connection);
            if uses::are_there(connection) {
                listed(connection, &mut patterns, id, begin)
            } else {
                searched(connection, &mut patterns, id, begin)
            }
        };
        let mut found = find().map_err(|e| self.failed(e))?;
        let more = found.len() > History::USES;
        found.truncate(History::USES);
        let lod = self.lod()?;
        let mut uses = Vec::new();
        for (op, graph, access) in found {
            let named = || -> rusqlite::Result<_> {
                let mut statement =
                    connection.prepare_cached("SELECT stream FROM op WHERE g = ?")?;
                let stream = statement
                    .query_row([op.0 as i64], |row| row.get::<_, Option<u32>>(0))
                    .optional()?;
                Ok((stream, lod.name(connection, op)?))
            };
            // Accesses that came late for an operation that was not stored belong to nothing.
            let (Some(stream), name) = named().map_err(|e| self.failed(e))? else { continue };
            let name = name.unwrap_or_else(|| "".into());
            uses.push(Use { op, stream: stream.map(StreamId), name, access, graph });
        }
        Ok((uses, more))
    }
}

/// The accesses of a graph's nodes to an allocation.
const OF_GRAPH: &str = "SELECT DISTINCT access.allocation, start, length, mode, basis, pattern \
    FROM graph_access access JOIN graph_node USING (graph, node) \
    WHERE graph = ? AND access.allocation = ? AND is_enabled";

/// By the lists.
fn listed(
    connection: &Connection,
    patterns: &mut Patterns<'_>,
    id: AllocationId,
    begin: OpSeq,
) -> rusqlite::Result<Vec<Found>> {
    let allocation = i64::from(id.0);
    let own = uses::list(connection, Kind::OperationsOnAllocation, allocation, begin.0, MOST)?;
    let mut operations: BTreeSet<(u64, Option<u64>)> = own.into_iter().map(|g| (g, None)).collect();
    for (launched, graph) in uses::graphs(connection, allocation, MOST)? {
        let launches = uses::launches(connection, launched, begin, MOST)?;
        operations.extend(launches.into_iter().map(|g| (g, Some(graph))));
        while operations.len() > MOST {
            operations.pop_last();
        }
    }
    let mut own = connection.prepare_cached(
        "SELECT allocation, start, length, mode, basis, pattern FROM access \
         WHERE id >= ? AND id < ? AND allocation = ? ORDER BY id",
    )?;
    // Only where there are graphs: the first schema has no tables of them.
    let mut of_graph = None;
    let mut found: Vec<Found> = Vec::new();
    for (g, graph) in operations {
        let mut rows = match (graph, access_ids(OpSeq(g))) {
            (Some(graph), _) => {
                let statement = match &mut of_graph {
                    Some(statement) => statement,
                    none => none.insert(connection.prepare_cached(OF_GRAPH)?),
                };
                statement.query(params![graph as i64, allocation])?
            }
            (None, Some(ids)) => own.query(params![ids.start, ids.end, allocation])?,
            (None, None) => continue,
        };
        while let Some(row) = rows.next()? {
            let graph = graph.and_then(|graph| u32::try_from(graph).ok()).map(GraphId);
            found.push((OpSeq(g), graph, patterns.access(row, 0)?));
        }
        if found.len() >= MOST {
            break;
        }
    }
    Ok(found)
}

/// By a search through the accesses.
fn searched(
    connection: &Connection,
    patterns: &mut Patterns<'_>,
    id: AllocationId,
    begin: OpSeq,
) -> rusqlite::Result<Vec<Found>> {
    let begin = access_ids(begin).map_or(0, |ids| ids.start);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id >> {}, allocation, start, length, mode, basis, pattern FROM access \
         WHERE id >= ? AND allocation = ? ORDER BY id LIMIT {MOST}",
        crate::schema::ACCESS_BITS,
    ))?;
    let mut rows = statement.query(params![begin, i64::from(id.0)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((OpSeq(row.get::<_, i64>(0)? as u64), None, patterns.access(row, 1)?));
    }
    Ok(found)
}
