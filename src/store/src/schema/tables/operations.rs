//! Tables of what the program did: operations and their parts, graphs, accesses, edges.

use super::super::column::Table;
use super::super::column::Unit::{
    Address, Bits, Bytes, Code, Id, Index as Issue, Nanoseconds, Number,
};
use super::{ID, INT, MAYBE, c, t};

/// A key, then the columns of a part: operations and graph nodes have the same kinds of parts.
macro_rules! part_columns {
    ($($key:expr),* $(,)?) => {
        &[
            $($key,)*
            c("kind", INT, Code("part kind"), "Kind of the part."),
            c("stream", MAYBE, Id("stream"), "Stream of a kernel of a launch on several devices."),
            c("kernel", MAYBE, Id("kernel"), "Its kernel."),
            c("source", MAYBE, Code("memory kind"), "Source memory of a copy."),
            c("destination", MAYBE, Code("memory kind"), "Destination memory of a copy."),
            c("bytes", MAYBE, Bytes, "Bytes that a copy moves."),
            c("flags", INT, Bits, "For a copy as in `op`; for a signal 1: the signal releases earlier work."),
            c("accesses", MAYBE, Number, "Number of the operation's accesses that belong to the part."),
            c("allocation", MAYBE, Id("allocation"), "Allocation of a signal's word."),
            c("address", MAYBE, Address, "Address of the word."),
            c("width", MAYBE, Bytes, "Width of the word: 4 or 8."),
            c("semaphore", MAYBE, Number, "Number of the external semaphore."),
            c("value", MAYBE, Number, "The value signalled or waited for (64 bits)."),
            c("compare", MAYBE, Number, "0 at least, 1 equal, 2 any bit of, 3 a zero bit beside."),
        ]
    };
}

pub(super) const TABLES: &[Table] = &[
    t(
        "op",
        "Driver calls, in their global issue order. Program order inside a stream is that of `g`.",
        &[
            c("g", ID, Issue, "Global issue index at entry: the id of the operation."),
            c("exit_after", MAYBE, Issue, "Issue index at return less `g`; NULL: never returned."),
            c("process", INT, Id("process"), "The calling process."),
            c("thread", INT, Id("thread"), "The calling thread."),
            c("api", INT, Id("string"), "Exact entry point."),
            c("action", INT, Code("action"), "Effect of the call."),
            c("stream", MAYBE, Id("stream"), "The stream that the call is issued to or is about."),
            c(
                "context",
                MAYBE,
                Id("context"),
                "The context that the call is about; for a peer copy the source's.",
            ),
            c(
                "event",
                MAYBE,
                Id("event"),
                "The event that the call is about; for an elapsed time the first one.",
            ),
            c(
                "allocation",
                MAYBE,
                Id("allocation"),
                "The allocation that the call makes or frees.",
            ),
            c("kernel", MAYBE, Id("kernel"), "The kernel that the call launches."),
            c(
                "other",
                MAYBE,
                Number,
                "By action: destination context of a peer copy, second event of an elapsed time, \
                 operation that enqueued the host function that runs, executable graph, file \
                 batch, object that host threads order themselves by, attachment (0 global, \
                 1 host, 2 single stream).",
            ),
            c("source", MAYBE, Code("memory kind"), "Source memory of a copy."),
            c("destination", MAYBE, Code("memory kind"), "Destination memory of a copy or memset."),
            c("bytes", MAYBE, Bytes, "Bytes that a copy moves."),
            c(
                "flags",
                INT,
                Bits,
                "1 synchronous form, 2 programmatic launch, 4 waits for programmatic predecessors, \
                 8 cooperative launch, 16 `event` is a programmatic event of the launch, 32 its \
                 launch completion event, 64 synchronous memory operations wait, 128 the source \
                 is read during the call, 256 at any time up to the copy's end, 512 a launch on \
                 several devices waits for its streams, 1024 holds them back, 2048 the kernel \
                 triggers its dependents behind its wait, 4096 perhaps before, 8192 `event` is a \
                 programmatic event that fires when the blocks begin. `flags >> 16`: how many of \
                 the accesses, the first ones, may come before the kernel's wait.",
            ),
            c(
                "graph",
                MAYBE,
                Id("graph"),
                "The graph that the call instantiates, updates or launches.",
            ),
            c(
                "start_ns",
                MAYBE,
                Nanoseconds,
                "Host time at entry, from `clock_base_ns` of `meta`.",
            ),
            c("duration_ns", MAYBE, Nanoseconds, "Host time from entry to return."),
            c("result", INT, Number, "The call's `CUresult`."),
            c("stack", MAYBE, Id("stack"), "Host stack of the call, where recorded."),
            c(
                "exit",
                "INTEGER GENERATED ALWAYS AS (g + exit_after) VIRTUAL",
                Issue,
                "Issue index at return (computed).",
            ),
            c(
                "end_ns",
                "INTEGER GENERATED ALWAYS AS (start_ns + duration_ns) VIRTUAL",
                Nanoseconds,
                "Host time at return, from `clock_base_ns` (computed).",
            ),
        ],
    ),
    Table {
        name: "op_part",
        doc: "The parts of operations that do several things at once: entries of a batch, kernels \
              of a launch on several devices, stream memory operations.",
        key: Some("op, ordinal"),
        columns: part_columns![
            c("op", INT, Id("op"), "The operation."),
            c("ordinal", INT, Number, "Position, from 0."),
        ],
    },
    t(
        "graph",
        "Graphs as they were at one moment: a graph that changes gets another row.",
        &[
            c("id", ID, Number, "Id of the graph in the trace."),
            c("process", INT, Id("process"), "Its process."),
            c("name", MAYBE, Id("string"), "Name, if it has one."),
        ],
    ),
    Table {
        name: "graph_node",
        doc: "Nodes of graphs.",
        key: Some("graph, node"),
        columns: &[
            c("graph", INT, Id("graph"), "The graph."),
            c("node", INT, Number, "Position in the graph, from 0."),
            c("made_by", INT, Id("op"), "The call that made the node."),
            c("api", INT, Id("string"), "Exact entry point of that call."),
            c("captured_from", MAYBE, Id("stream"), "The stream that was captured."),
            c("is_enabled", INT, Number, "1, or 0 for a node that only passes order on."),
            c("action", INT, Code("node action"), "Action of the node."),
            c("kernel", MAYBE, Id("kernel"), "Its kernel."),
            c("event", MAYBE, Id("event"), "The event that it records or waits for."),
            c("allocation", MAYBE, Id("allocation"), "The memory that it allocates or frees."),
            c("source", MAYBE, Code("memory kind"), "Source memory of a copy."),
            c("destination", MAYBE, Code("memory kind"), "Destination memory of a copy or memset."),
            c("bytes", MAYBE, Bytes, "Bytes that a copy moves."),
            c("flags", INT, Bits, "As in `op`."),
            c(
                "other",
                MAYBE,
                Number,
                "By action: conditional kind (0 if, 1 while, 2 switch), `CUgraphNodeType` of an \
                 unknown node.",
            ),
            c("stack", MAYBE, Id("stack"), "Host stack of that call, where recorded."),
        ],
    },
    Table {
        name: "graph_body",
        doc: "The graphs inside of nodes: of a child graph node, the bodies of a conditional node.",
        key: Some("graph, node, ordinal"),
        columns: &[
            c("graph", INT, Id("graph"), "The graph."),
            c("node", INT, Number, "The node."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("body", INT, Id("graph"), "The graph inside."),
        ],
    },
    Table {
        name: "graph_part",
        doc: "Stream memory operations and semaphore uses of nodes.",
        key: Some("graph, node, ordinal"),
        columns: part_columns![
            c("graph", INT, Id("graph"), "The graph."),
            c("node", INT, Number, "The node."),
            c("ordinal", INT, Number, "Position, from 0."),
        ],
    },
    Table {
        name: "graph_edge",
        doc: "Edges of graphs.",
        key: Some("graph, ordinal"),
        columns: &[
            c("graph", INT, Id("graph"), "The graph."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("from_node", INT, Number, "The node before."),
            c("to_node", INT, Number, "The node behind."),
            c(
                "port",
                INT,
                Number,
                "From when on the node behind may begin: 0 the other one has ended, 1 all its blocks \
                 have triggered, 2 have begun, and the wait of the kernel behind covers it, 3 have \
                 begun.",
            ),
        ],
    },
    Table {
        name: "graph_access",
        doc: "Accesses of graph nodes at each launch.",
        key: Some("graph, node, ordinal"),
        columns: &[
            c("graph", INT, Id("graph"), "The graph."),
            c("node", INT, Number, "The node."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("allocation", INT, Id("allocation"), "The allocation touched."),
            c("start", INT, Address, "First byte touched."),
            c("length", INT, Bytes, "Bytes from the first to the last one touched."),
            c("mode", INT, Code("mode"), "Mode of the access."),
            c("basis", INT, Code("basis"), "Evidence for the access."),
            c("pattern", MAYBE, Id("access_pattern"), "Which of these bytes, when not all."),
        ],
    },
    t(
        "access",
        "What operations touch. The rows of operation `g` are those with `id` in \
         `g << 24 .. (g + 1) << 24`: a search by that range is fast, one by `op` reads the table.",
        &[
            c("id", ID, Number, "`op << 24` plus the position among the operation's accesses."),
            c("allocation", INT, Id("allocation"), "The allocation touched."),
            c("start", INT, Address, "First byte touched."),
            c("length", INT, Bytes, "Bytes from the first to the last one touched."),
            c("mode", INT, Code("mode"), "Mode of the access."),
            c("basis", INT, Code("basis"), "Evidence for the access."),
            c(
                "pattern",
                MAYBE,
                Id("access_pattern"),
                "The touched bytes of the range, when they are not all of them.",
            ),
            c(
                "op",
                "INTEGER GENERATED ALWAYS AS (id >> 24) VIRTUAL",
                Id("op"),
                "The operation (computed).",
            ),
        ],
    ),
    t(
        "access_pattern",
        "Strided patterns of accesses, each once: `slices` times `rows` runs of `width` bytes.",
        &[
            c("id", ID, Number, "Id of the pattern."),
            c("width", INT, Bytes, "Bytes touched in a row."),
            c("pitch", INT, Bytes, "From one row's begin to the next one's."),
            c("rows", INT, Number, "Rows in a slice."),
            c("slice_pitch", INT, Bytes, "From one slice's begin to the next one's."),
            c("slices", INT, Number, "Slices."),
        ],
    ),
    t(
        "edge",
        "Synchronisation edges of the analysis. Derived; program order is not among them. The edges \
         that end at operation `g` are those with `id` in `g << 24 .. (g + 1) << 24`: a search by \
         that range is fast, one by `to_op` reads the table; those that begin at it are found by \
         `lod_edge`.",
        &[
            c("id", ID, Number, "`to_op << 24` plus a number that no other edge of it has."),
            c("from_op", INT, Id("op"), "The earlier operation."),
            c("kind", INT, Code("edge kind"), "Cause of the edge."),
            c("tier", INT, Code("tier"), "How far the edge can be relied on."),
            c(
                "to_op",
                "INTEGER GENERATED ALWAYS AS (id >> 24) VIRTUAL",
                Id("op"),
                "The later operation (computed).",
            ),
        ],
    ),
];
