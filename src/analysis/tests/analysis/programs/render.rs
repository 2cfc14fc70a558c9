//! Traces in a form that fits a failure message: one call a line.

use std::fmt::Write;
use streamsan_model::{Access, EdgePort, Entity, Extent, Graph, TraceItem};

/// All calls of a trace, and the streams and allocations that they refer to.
pub(crate) fn render(items: &[TraceItem]) -> String {
    let mut text = String::new();
    for item in items {
        let line = match item {
            TraceItem::Entity(Entity::Stream(s)) => {
                format!("{:?} in {:?}: {} stream", s.id, s.context, s.kind.description())
            }
            TraceItem::Entity(Entity::Allocation(a)) => {
                let (context, kind) = (a.context, a.kind.description());
                format!("{:?} in {context:?}: {kind} {:?}", a.id, a.range)
            }
            TraceItem::Entity(Entity::Graph(graph)) => render_graph(graph),
            TraceItem::Entity(_) | TraceItem::Range(_) => continue,
            TraceItem::Returned { g, exit, status } => {
                format!("    {g:?} returned at {exit:?} with {}", status.0)
            }
            TraceItem::Operation(op) => {
                let exit = op.exit.map_or("running".into(), |exit| format!("{exit:?}"));
                let status = if op.status.is_success() { "" } else { " FAILED" };
                let mut line =
                    format!("{:?}..{exit} {:?} {:?}{status}", op.g, op.thread, op.action);
                for access in &op.accesses {
                    line.push_str(&render_access(access));
                }
                line
            }
        };
        writeln!(text, "{line}").expect("strings take everything");
    }
    text
}

fn render_graph(graph: &Graph) -> String {
    let mut text = format!("{:?}", graph.id);
    for (index, node) in graph.nodes.iter().enumerate() {
        let enabled = if node.enabled { "" } else { " disabled" };
        write!(text, "\n    {index} of {:?}: {:?}{enabled}", node.made_by, node.action)
            .expect("strings take everything");
        for edge in graph.edges.iter().filter(|edge| edge.to as usize == index) {
            let how = match edge.port {
                EdgePort::End => String::new(),
                port => format!("({}) ", port.description()),
            };
            write!(text, " {how}behind {}", edge.from).expect("strings take everything");
        }
        for access in &node.accesses {
            text.push_str(&render_access(access));
        }
    }
    text
}

fn render_access(access: &Access) -> String {
    let Access { allocation, extent, mode, basis } = access;
    let extent = match extent {
        Extent::Range(range) => format!("{range:?}"),
        Extent::Strided(p) => format!("{p:?}"),
    };
    format!("\n      {} {} {allocation:?} {extent}", basis.description(), mode.description())
}
