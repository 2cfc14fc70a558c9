//! Tables, columns and indexes of schema 7.
//!
//! A trace holds millions of rows in `op` and `access` and few anywhere else, so these two are
//! packed: integers of SQLite take as many bytes as their value needs, hence distances
//! (`exit_after`, `duration_ns`, `length`) in place of second positions, which come back as
//! generated columns that take no space.

use super::column::Unit::{
    Address, Bits, Bytes, Code, Id, Index as Issue, Nanoseconds, Number, Packed, Text,
};
use super::column::{Column, Index, Table, Unit};

const ID: &str = "INTEGER PRIMARY KEY";
const INT: &str = "INTEGER NOT NULL";
const MAYBE: &str = "INTEGER";

const fn c(name: &'static str, declaration: &'static str, unit: Unit, doc: &'static str) -> Column {
    Column { name, declaration, unit, doc }
}

const fn t(name: &'static str, doc: &'static str, columns: &'static [Column]) -> Table {
    Table { name, doc, key: None, columns }
}

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

pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "meta",
        doc: "Facts about the recording. `state` is `recording` (still being written, or killed), \
              `complete` or `truncated`; `clock_base_ns` is added to the times of `op`; \
              `argument.N` are the words of the command line; `waited_for_recording_ms` is how long the threads of the program waited for the recording, all together, where they did; `directory`, `environment.NAME` (variables that decide what CUDA does) and `option.NAME` are how the program was run.",
        key: Some("key"),
        columns: &[
            c("key", "TEXT NOT NULL", Text, "Name of the fact."),
            c("value", "TEXT NOT NULL", Text, "Its value; times are RFC 3339 in UTC."),
        ],
    },
    t(
        "string",
        "Every text of the other tables, once.",
        &[c("id", ID, Number, "Id of the text."), c("value", "TEXT NOT NULL", Text, "The text.")],
    ),
    Table {
        name: "enumeration",
        doc: "The words behind the codes of the other tables.",
        key: Some("name, code"),
        columns: &[
            c("name", "TEXT NOT NULL", Text, "Name of the enumeration."),
            c("code", INT, Number, "The code."),
            c("word", "TEXT NOT NULL", Text, "What it means, as reports say it."),
        ],
    },
    t(
        "process",
        "Processes of the run.",
        &[
            c("id", ID, Number, "Id of the process in the trace."),
            c("pid", INT, Number, "The operating system's number."),
            c("parent_pid", INT, Number, "The operating system's number of its parent."),
            c("executable", INT, Id("string"), "Path of the executable."),
        ],
    ),
    Table {
        name: "process_argument",
        doc: "Arguments of the processes, the program's own name first.",
        key: Some("process, ordinal"),
        columns: &[
            c("process", INT, Id("process"), "The process."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("value", INT, Id("string"), "The argument."),
        ],
    },
    t(
        "thread",
        "Host threads.",
        &[
            c("id", ID, Number, "Id of the thread in the trace."),
            c("process", INT, Id("process"), "Its process."),
            c("tid", INT, Number, "The operating system's number."),
        ],
    ),
    t(
        "context",
        "CUDA contexts.",
        &[
            c("id", ID, Number, "Id of the context in the trace."),
            c("process", INT, Id("process"), "Its process."),
            c("device", INT, Number, "Device ordinal as the process sees it."),
            c("is_primary", INT, Number, "1 for the device's primary context, else 0."),
            c("handle", INT, Number, "The driver's handle, for display."),
            c("parent", MAYBE, Id("context"), "The primary context of a green context."),
            c(
                "concurrent_managed_access",
                INT,
                Number,
                "1 where the host may touch managed memory while kernels run, else 0.",
            ),
        ],
    ),
    t(
        "stream",
        "Streams: one row from creation to destruction, never a handle that is used again.",
        &[
            c("id", ID, Number, "Id of the stream in the trace."),
            c("context", INT, Id("context"), "Its context."),
            c(
                "kind",
                INT,
                Code("stream kind"),
                "The stream's relation to the legacy default stream.",
            ),
            c(
                "thread",
                MAYBE,
                Id("thread"),
                "The thread whose default stream this is, if it is one.",
            ),
            c("priority", INT, Number, "Scheduling priority; orders nothing."),
            c("handle", INT, Number, "The driver's handle, for display."),
            c("driver_id", INT, Number, "`cuStreamGetId`, 0 where unknown."),
            c("name", MAYBE, Id("string"), "Name, if it has one."),
        ],
    ),
    t(
        "event",
        "Event objects. The versions of an event are the operations that record it.",
        &[
            c("id", ID, Number, "Id of the event in the trace."),
            c("context", INT, Id("context"), "The context it was created in."),
            c("handle", INT, Number, "The driver's handle, for display."),
            c("flags", INT, Bits, "`CU_EVENT_*` flags of its creation."),
            c("name", MAYBE, Id("string"), "Name, if it has one."),
            c("is_imported", INT, Number, "1 if made by a process outside of the run, else 0."),
        ],
    ),
    t(
        "allocation",
        "Generations of address ranges, each from its allocation to its free.",
        &[
            c("id", ID, Number, "Id of the allocation in the trace."),
            c("process", INT, Id("process"), "The process whose address space it lies in."),
            c("context", MAYBE, Id("context"), "Context current when it was allocated."),
            c("kind", INT, Code("memory kind"), "Kind of the memory."),
            c("start", INT, Address, "First byte."),
            c("length", INT, Bytes, "Length."),
            c("api", INT, Id("string"), "Entry point that made it; empty if older than the trace."),
            c("name", MAYBE, Id("string"), "Name, if it has one."),
            c(
                "backing",
                MAYBE,
                Number,
                "Number of the physical memory behind it, where other ranges may stand for it too.",
            ),
            c("backing_offset", MAYBE, Bytes, "Offset of the range's begin in that memory."),
            c("stack", MAYBE, Id("stack"), "Host stack of the call that made it, where recorded."),
        ],
    ),
    t(
        "module",
        "Code images, as the processes loaded them.",
        &[
            c("id", ID, Number, "Id of the module in the trace."),
            c("process", INT, Id("process"), "The process that loaded it."),
            c(
                "hash",
                MAYBE,
                Number,
                "XXH3 of the image's bytes (64 bits); NULL where they were not read.",
            ),
            c("size", INT, Bytes, "Its size, 0 where unknown."),
            c("path", MAYBE, Id("string"), "The file it was loaded from; NULL: memory only."),
            c("offset", INT, Bytes, "Offset of the image in the file."),
        ],
    ),
    t(
        "kernel",
        "Kernels.",
        &[
            c("id", ID, Number, "Id of the kernel in the trace."),
            c("name", INT, Id("string"), "Mangled name."),
        ],
    ),
    t(
        "kernel_code",
        "The knowledge of kernels from their code; no row where the code was not analysed.",
        &[
            c("kernel", ID, Id("kernel"), "The kernel."),
            c("module", MAYBE, Id("module"), "The image it comes from, where known."),
            c("source", INT, Code("code source"), "Source of the knowledge."),
            c(
                "reason",
                MAYBE,
                Id("string"),
                "Why the code was not read, or why it may touch anything.",
            ),
            c(
                "waits_on_primary",
                INT,
                Number,
                "1: every access comes behind the wait for the kernel before it.",
            ),
        ],
    ),
    Table {
        name: "kernel_word",
        doc: "Words of the parameters that a kernel uses as addresses, as its code says.",
        key: Some("kernel, ordinal"),
        columns: &[
            c("kernel", INT, Id("kernel"), "The kernel."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("param", INT, Number, "Position of the parameter, from 0."),
            c("offset", INT, Bytes, "Bytes from the start of the parameter."),
            c("kind", INT, Code("word kind"), "The object that the word leads to."),
            c("mode", MAYBE, Code("mode"), "Access to that object; NULL: none."),
            c("is_table", INT, Number, "1: pointers are loaded from there, and used."),
        ],
    },
    Table {
        name: "kernel_global",
        doc: "Variables of its module that a kernel touches, from its code.",
        key: Some("kernel, ordinal"),
        columns: &[
            c("kernel", INT, Id("kernel"), "The kernel."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("name", INT, Id("string"), "Name of the variable."),
            c("mode", MAYBE, Code("mode"), "Access to the variable; NULL: none."),
            c("is_table", INT, Number, "1: pointers are loaded from it, and used."),
        ],
    },
    Table {
        name: "kernel_param",
        doc: "Parameter layouts of the kernels; none where the driver could not tell.",
        key: Some("kernel, ordinal"),
        columns: &[
            c("kernel", INT, Id("kernel"), "The kernel."),
            c("ordinal", INT, Number, "Position, from 0."),
            c("offset", INT, Bytes, "Offset in the parameter buffer."),
            c("size", INT, Bytes, "Size."),
        ],
    },
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
    t(
        "finding",
        "Findings of the analysis, one for a pair of operations and an allocation. Of one mistake (`fingerprint` and `severity`) a recording keeps the first 4,096; how many more there were stands in `meta` as `findings_left_out`. Derived.",
        &[
            c("id", ID, Number, "Id of the finding."),
            c("fingerprint", INT, Number, "Equal for occurrences of one mistake (64 bits)."),
            c("severity", INT, Code("severity"), "Race, latent or lint."),
            c("class", INT, Code("class"), "Class of the mistake."),
            c("kind", INT, Code("conflict kind"), "Kind of conflict."),
            c("confidence", INT, Code("confidence"), "Confidence of the finding."),
            c("allocation", INT, Id("allocation"), "The allocation both touch."),
            c("start", INT, Address, "First byte touched by both."),
            c("length", INT, Bytes, "Bytes touched by both (the hull, for patterns)."),
            c("knows", MAYBE, Id("op"), "Newest operation of the first side known to the second."),
            c("nearest", MAYBE, Id("op"), "Event operation that falls short of ordering them."),
            c("masked_by", MAYBE, Id("op"), "Call that orders them today without a guarantee."),
            c(
                "record_after_op",
                MAYBE,
                Id("op"),
                "Proposed edge: record behind this operation; \
               NULL: nothing is proposed.",
            ),
            c("on_stream", MAYBE, Id("stream"), "... on this stream (NULL: host)."),
            c("wait_before_op", MAYBE, Id("op"), "... and wait before this operation."),
            c("in_stream", MAYBE, Id("stream"), "... in this stream (NULL: host)."),
        ],
    ),
    Table {
        name: "finding_access",
        doc: "The two sides of each finding. Derived.",
        key: Some("finding, side"),
        columns: &[
            c("finding", INT, Id("finding"), "The finding."),
            c("side", INT, Number, "1 the earlier operation by issue order, 2 the later one."),
            c("op", INT, Id("op"), "The operation."),
            c("stream", MAYBE, Id("stream"), "Its stream; NULL for the host."),
            c("api", INT, Id("string"), "Exact entry point."),
            c("kernel", MAYBE, Id("string"), "Kernel name, for launches."),
            c("allocation", INT, Id("allocation"), "The allocation touched."),
            c("start", INT, Address, "First byte touched."),
            c("length", INT, Bytes, "Bytes from the first to the last one touched."),
            c("mode", INT, Code("mode"), "Mode of the access."),
            c("basis", INT, Code("basis"), "Evidence for the access."),
            c("pattern", MAYBE, Id("access_pattern"), "Which of these bytes, when not all."),
            c("stack", MAYBE, Id("stack"), "Host stack of the call, where recorded."),
        ],
    },
    t(
        "lint",
        "Calls that cannot do what they seem to, without a conflict in this run. Derived.",
        &[
            c("id", ID, Number, "Id of the lint."),
            c("fingerprint", INT, Number, "Equal for occurrences of one mistake (64 bits)."),
            c("class", INT, Code("class"), "Which lint."),
            c("op", INT, Id("op"), "The call at which the lint is reported."),
            c("api", INT, Id("string"), "Exact entry point of that call."),
            c("stream", MAYBE, Id("stream"), "The stream that the call is issued to."),
            c("event", MAYBE, Id("event"), "The event in question."),
            c("related", MAYBE, Id("op"), "The other call in question."),
            c("stack", MAYBE, Id("stack"), "Host stack of the call, where recorded."),
            c("related_stack", MAYBE, Id("stack"), "Host stack of the other call."),
        ],
    ),
    Table {
        name: "stack",
        doc: "Host stacks. Empty where stacks are not recorded.",
        key: Some("id, depth"),
        columns: &[
            c("id", INT, Number, "Id of the stack."),
            c("depth", INT, Number, "0 for the innermost frame."),
            c("frame", MAYBE, Id("frame"), "The frame; in the last row NULL: more follow."),
        ],
    },
    t(
        "frame",
        "Frames of host stacks: places in machine code, and functions of Python.",
        &[
            c("id", ID, Number, "Id of the frame."),
            c(
                "image",
                MAYBE,
                Id("string"),
                "Executable or library; empty: code in no file; NULL: a Python frame.",
            ),
            c("build_id", MAYBE, Id("string"), "Its GNU build id, in hexadecimal digits."),
            c("offset", MAYBE, Address, "The return address, as a virtual address of the file."),
        ],
    ),
    Table {
        name: "frame_source",
        doc: "Functions of the source that frames stand for. A native frame has none until it was \
              looked up, and several where functions were inlined.",
        key: Some("frame, ordinal"),
        columns: &[
            c("frame", INT, Id("frame"), "The frame."),
            c("ordinal", INT, Number, "0 for the innermost function."),
            c("function", MAYBE, Id("string"), "Function."),
            c("file", MAYBE, Id("string"), "Source file."),
            c("line", MAYBE, Number, "Source line, from 1."),
            c("is_inlined", INT, Number, "1 if it was inlined into the function behind it."),
        ],
    },
    t(
        "lod_axis",
        "Axes of the level-of-detail data. Derived, like every table whose name begins with `lod`; \
         written when a trace is finished. `lod` alone fills while it is recorded, and is not whole \
         before.",
        &[
            c("axis", ID, Code("axis"), "The axis."),
            c("shift", INT, Number, "`shift` of the finest level in `lod`."),
            c(
                "top",
                INT,
                Number,
                "`shift` of the coarsest level; every second one between is there.",
            ),
            c("overall", INT, Number, "`shift` of the one level of all rows together."),
            c("first", INT, Number, "First position."),
            c("end", INT, Number, "One past the last position."),
        ],
    ),
    t(
        "lod_lane",
        "Rows of the timelines.",
        &[
            c(
                "lane",
                ID,
                Number,
                "Twice the stream's id; for calls to no stream, twice the thread's id plus 1.",
            ),
            c("process", INT, Id("process"), "The process of the row's first operation."),
            c("operations", INT, Number, "Number of operations."),
            c("first", INT, Id("op"), "The first one."),
            c("last", INT, Id("op"), "The last one."),
        ],
    ),
    Table {
        name: "lod",
        doc: "Operations of a row in buckets of `2^shift` positions of an axis.",
        key: Some("axis, shift, lane, bucket"),
        columns: &[
            c("axis", INT, Code("axis"), "The axis."),
            c("shift", INT, Number, "Binary logarithm of a bucket's length."),
            c("lane", INT, Number, "As in `lod_lane`; -1 for all rows together."),
            c("bucket", INT, Number, "Position, shifted right by `shift`."),
            c("operations", INT, Number, "Number of operations."),
            c("first", INT, Id("op"), "The first one by issue order."),
            c("groups", INT, Bits, "1 shifted left by the colour group of each operation."),
            c("findings", INT, Number, "Number of sides of findings."),
            c(
                "detail",
                "BLOB",
                Packed,
                "On the logical axis, finest level: the operations, as in `src/store/src/lod/detail.rs`.",
            ),
        ],
    },
    t(
        "lod_finding",
        "Operations that are sides of findings, or that findings speak of.",
        &[
            c("op", ID, Id("op"), "The operation."),
            c("sides", INT, Number, "Number of findings of which the operation is a side."),
            c("lane", INT, Number, "As in `lod_lane`."),
            c("start_ns", MAYBE, Nanoseconds, "As in `op`."),
            c("depth", INT, Number, "Its happens-before depth."),
        ],
    ),
    t(
        "lod_lifetime",
        "Life of the allocations that the trace sees begin or end.",
        &[
            c("allocation", ID, Id("allocation"), "The allocation."),
            c("allocated", MAYBE, Id("op"), "The call that made it."),
            c("freed", MAYBE, Id("op"), "The call that freed it."),
        ],
    ),
    Table {
        name: "lod_use",
        doc: "Lists of uses, as ascending numbers packed as in `src/store/src/lod/uses.rs`: with \
              kind 0 the operations that touch allocation `id`, 1 those that launch graph `id`, 2 \
              the graphs whose nodes touch allocation `id`, 3 those of which graph `id` is a part.",
        key: Some("kind, id, first"),
        columns: &[
            c("kind", INT, Number, "Subject of the list."),
            c("id", INT, Number, "Allocation or graph."),
            c("first", INT, Number, "The first number of this piece of the list."),
            c("numbers", "BLOB NOT NULL", Packed, "The further ones."),
        ],
    },
    t(
        "lod_edge",
        "Edges by where they begin, packed as in `src/store/src/lod/edges.rs`.",
        &[
            c("block", ID, Number, "`from_op >> 10` of all edges in the row."),
            c("edges", "BLOB NOT NULL", Packed, "The edges."),
        ],
    ),
    t(
        "lod_call",
        "Calls by entry point.",
        &[
            c("api", ID, Id("string"), "The entry point."),
            c("calls", INT, Number, "Number of calls."),
            c(
                "driver_ns",
                INT,
                Nanoseconds,
                "Host time from entry to return, of all calls together.",
            ),
            c("failures", INT, Number, "Calls that did not answer success."),
        ],
    ),
    t(
        "coverage",
        "Coverage: the calls that the recording saw or only counted, and its losses.",
        &[
            c("id", ID, Number, "Position."),
            c("kind", INT, Code("coverage"), "Kind of the count."),
            c(
                "name",
                MAYBE,
                Id("string"),
                "Entry point, kernel or reason that the count is about.",
            ),
            c("count", INT, Number, "Number of calls, records, launches or operations."),
        ],
    ),
    Table {
        name: "proof",
        doc: "What each other table held when the trace was finished. A `complete` trace that does \
              not fit it is damaged. Of `op` and `access` the checksum is the sum of the rows', \
              modulo 2^128; of the others it is that of all rows one after the other, in the order \
              of their key. See `src/store/src/proof.rs`.",
        key: Some("name"),
        columns: &[
            c("name", "TEXT NOT NULL", Text, "Name of the table."),
            c("rows", INT, Number, "Number of rows."),
            c("checksum", "TEXT NOT NULL", Text, "XXH3 (128 bits), in hexadecimal digits."),
        ],
    },
];

/// Made when a trace is finished: one index during the load would halve its speed. The large tables
/// have none, since sorting their rows holds up the end of a run: their keys find the accesses of an
/// operation and the edges that end at it, `lod` the operations of a stream, `lod_use` those on an
/// allocation and `lod_edge` the edges that begin at an operation.
pub(crate) const INDEXES: &[Index] =
    &[Index { name: "finding_by_fingerprint", on: "finding (fingerprint)" }];
