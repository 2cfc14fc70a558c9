//! Graphs and parts of operations as rows.

use super::Writer;
use crate::part::{NodeColumns, PartColumns};
use crate::row::AccessColumns;
use streamsan_model::{Action, Graph, OpSeq};

impl Writer {
    pub(super) fn put_graph(&mut self, graph: &Graph) {
        let id = Some(i64::from(graph.id.0));
        let name = self.intern_option(graph.name.as_deref());
        for sql in [
            "DELETE FROM graph_node WHERE graph = ?",
            "DELETE FROM graph_body WHERE graph = ?",
            "DELETE FROM graph_part WHERE graph = ?",
            "DELETE FROM graph_edge WHERE graph = ?",
            "DELETE FROM graph_access WHERE graph = ?",
        ] {
            self.put(sql, &[id]);
        }
        self.put(
            "INSERT OR REPLACE INTO graph VALUES (?, ?, ?)",
            &[id, Some(i64::from(graph.process.0)), name],
        );
        for (position, node) in (0..).zip(&graph.nodes) {
            let api = self.intern(&node.api);
            let columns = NodeColumns::from(&node.action);
            let at = Some(position);
            self.put(
                "INSERT INTO graph_node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &[
                    id,
                    at,
                    Some(node.made_by.0 as i64),
                    Some(api),
                    node.captured_from.map(|stream| i64::from(stream.0)),
                    Some(i64::from(node.enabled)),
                    Some(columns.action),
                    columns.kernel,
                    columns.event,
                    columns.allocation,
                    columns.source,
                    columns.destination,
                    columns.bytes,
                    Some(columns.flags),
                    columns.other,
                    node.stack.map(|stack| i64::from(stack.0)),
                ],
            );
            for (ordinal, body) in (0..).zip(&columns.bodies) {
                self.put(
                    "INSERT INTO graph_body VALUES (?, ?, ?, ?)",
                    &[id, at, Some(ordinal), Some(i64::from(body.0))],
                );
            }
            for (ordinal, part) in (0..).zip(&columns.parts) {
                let mut values = vec![id, at, Some(ordinal)];
                values.extend(part.0);
                self.put(
                    "INSERT INTO graph_part VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \
                     ?, ?)",
                    &values,
                );
            }
            for (ordinal, access) in (0..).zip(&node.accesses) {
                let access = AccessColumns::encode(access, |shape| self.pattern(shape));
                self.put(
                    "INSERT INTO graph_access VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    &[
                        id,
                        at,
                        Some(ordinal),
                        Some(access.allocation),
                        Some(access.start),
                        Some(access.length),
                        Some(access.mode),
                        Some(access.basis),
                        access.pattern,
                    ],
                );
            }
        }
        for (ordinal, edge) in (0..).zip(&graph.edges) {
            self.put(
                "INSERT INTO graph_edge VALUES (?, ?, ?, ?, ?)",
                &[
                    id,
                    Some(ordinal),
                    Some(i64::from(edge.from)),
                    Some(i64::from(edge.to)),
                    Some(edge.port as i64),
                ],
            );
        }
    }

    /// The rows of `op_part` of an operation; most operations have none.
    pub(super) fn put_parts(&mut self, g: OpSeq, action: &Action) {
        let parts: Vec<PartColumns> = match action {
            Action::Batch(batch) => batch.entries.iter().map(PartColumns::of_entry).collect(),
            Action::LaunchMultiDevice(launch) => {
                launch.launches.iter().map(PartColumns::of_member).collect()
            }
            Action::CollectiveGroup(group) => {
                group.members.iter().map(PartColumns::of_collective).collect()
            }
            Action::Signals(signals) => {
                signals.operations.iter().map(PartColumns::of_signal).collect()
            }
            _ => return,
        };
        for (ordinal, part) in (0..).zip(parts) {
            let mut values = vec![Some(g.0 as i64), Some(ordinal)];
            values.extend(part.0);
            self.put(
                "INSERT INTO op_part VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                &values,
            );
        }
    }
}
