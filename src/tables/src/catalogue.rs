//! What the tables hold. The document is made of it, and files are written by it.

use crate::column::{Column, Kind};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// One row for each trace.
    Traces,
    /// Why not everything was seen, one row for each reason; none where everything was.
    Reasons,
    /// Processes of the run.
    Processes,
    /// Streams, one row from creation to destruction.
    Streams,
    /// Generations of address ranges, each from its allocation to its free.
    Allocations,
    /// Kernels.
    Kernels,
    /// Driver calls, in their issue order.
    Operations,
    /// The memory that operations touch.
    Accesses,
    /// Synchronisation that orders operations, as the analysis found it; the order of a stream is not among it.
    Edges,
    /// Findings and lints, one row for each mistake.
    Findings,
    /// Host stacks of calls, one row for each function of the source, the innermost first.
    Stacks,
    /// Ranges and marks by which the program names its phases, as NVTX tells them.
    Ranges,
}

impl Table {
    /// All tables, in the order of their numbers.
    pub const ALL: [Self; 12] = [
        Self::Traces,
        Self::Reasons,
        Self::Processes,
        Self::Streams,
        Self::Allocations,
        Self::Kernels,
        Self::Operations,
        Self::Accesses,
        Self::Edges,
        Self::Findings,
        Self::Stacks,
        Self::Ranges,
    ];

    /// Its name, which is that of its directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Reasons => "reasons",
            Self::Processes => "processes",
            Self::Streams => "streams",
            Self::Allocations => "allocations",
            Self::Kernels => "kernels",
            Self::Operations => "operations",
            Self::Accesses => "accesses",
            Self::Edges => "edges",
            Self::Findings => "findings",
            Self::Stacks => "stacks",
            Self::Ranges => "ranges",
        }
    }

    /// What a row is, for the document.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Traces => {
                "One row for each trace: where it comes from, and what was found in it."
            }
            Self::Reasons => {
                "Why not everything was seen, one row for each reason; none where everything was."
            }
            Self::Processes => "Processes of the run.",
            Self::Streams => "Streams, one row from creation to destruction.",
            Self::Allocations => {
                "Generations of address ranges, each from its allocation to its free."
            }
            Self::Kernels => "Kernels.",
            Self::Operations => "Driver calls, in their issue order.",
            Self::Accesses => "The memory that operations touch.",
            Self::Edges => {
                "Synchronisation that orders operations, as the analysis found it; the order of a stream is not among it."
            }
            Self::Findings => {
                "Findings and lints, one row for each mistake: what is equal in all of its occurrences, and the occurrence that reports show."
            }
            Self::Stacks => {
                "Host stacks of calls, one row for each function of the source, the innermost first. Without the frames of the driver and of the start of a thread, as reports show them."
            }
            Self::Ranges => {
                "Ranges and marks by which the program names its phases, as NVTX tells them."
            }
        }
    }

    /// Its columns, in their order.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Traces => &TRACES,
            Self::Reasons => &REASONS,
            Self::Processes => &PROCESSES,
            Self::Streams => &STREAMS,
            Self::Allocations => &ALLOCATIONS,
            Self::Kernels => &KERNELS,
            Self::Operations => &OPERATIONS,
            Self::Accesses => &ACCESSES,
            Self::Edges => &EDGES,
            Self::Findings => &FINDINGS,
            Self::Stacks => &STACKS,
            Self::Ranges => &RANGES,
        }
    }
}

const fn column(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, nullable: false, meaning }
}

const fn nullable(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
    Column { name, kind, nullable: true, meaning }
}

const INTEGER: Kind = Kind::Integer;
const UNSIGNED: Kind = Kind::Unsigned;
const TEXT: Kind = Kind::Text;
const FLAG: Kind = Kind::Flag;

const TRACES: [Column; 11] = [
    column("file", TEXT, "The file, as the command line named it."),
    column("tool_version", TEXT, "Version of streamsan that recorded it."),
    column(
        "state",
        TEXT,
        "`complete`; `recording` or `truncated` where the recording was cut off.",
    ),
    nullable(
        "started_at",
        INTEGER,
        "Begin of the recording: ns since 1970-01-01T00:00:00Z; null in a text trace.",
    ),
    column("host", TEXT, "Name of the machine."),
    column("driver", TEXT, "Version of the driver, or the policy of the simulated one."),
    column("command", TEXT, "The command line, its words with blanks between."),
    column("verdict", TEXT, "`RACY`, `INCOMPLETE`, `NO CUDA` or `CLEAN`."),
    column(
        "calls",
        INTEGER,
        "Driver calls that were seen; those of the trace where the recording has not counted them.",
    ),
    column("dropped", INTEGER, "Records that were lost."),
    column("operations", INTEGER, "Rows of the trace in `operations`."),
];

const REASONS: [Column; 2] = [
    column("kind", TEXT, "As `reasons` of the [JSON form](report-format.md#json) has it."),
    column("text", TEXT, "The reason in words."),
];

const PROCESSES: [Column; 5] = [
    column("process", INTEGER, "Id in the trace."),
    column("pid", INTEGER, "The operating system's number."),
    column("parent_pid", INTEGER, "That of its parent."),
    column("executable", TEXT, "Path of the executable."),
    column("command", TEXT, "Its arguments, with blanks between."),
];

const STREAMS: [Column; 8] = [
    column("stream", INTEGER, "Id in the trace."),
    column("context", INTEGER, "Id of its context in the trace."),
    nullable("process", INTEGER, "Id in `processes`."),
    nullable("device", INTEGER, "Device ordinal as the process sees it."),
    column("kind", TEXT, "`blocking`, `non-blocking`, `legacy default` or `per-thread default`."),
    column("priority", INTEGER, "Scheduling priority; orders nothing."),
    column("handle", UNSIGNED, "The driver's handle, for display."),
    nullable("name", TEXT, "Its name, if it has one."),
];

const ALLOCATIONS: [Column; 12] = [
    column("allocation", INTEGER, "Id in the trace."),
    column("process", INTEGER, "Id in `processes`."),
    nullable("context", INTEGER, "Context that was current."),
    nullable("device", INTEGER, "Device of that context."),
    column("kind", TEXT, "Kind of the memory, as reports name it."),
    column("start", UNSIGNED, "First address."),
    column("length", INTEGER, "Bytes."),
    column("api", TEXT, "Entry point that made it; empty where it is older than the trace."),
    nullable("name", TEXT, "Its name, if it has one."),
    nullable(
        "backing",
        INTEGER,
        "Number of the physical memory behind it, where other ranges may stand for it too.",
    ),
    nullable("backing_offset", INTEGER, "Offset of the range's begin in that memory, in bytes."),
    nullable("stack", INTEGER, "Id in `stacks` of the call that made it."),
];

const KERNELS: [Column; 3] = [
    column("kernel", INTEGER, "Id in the trace."),
    column("name", TEXT, "Mangled name."),
    column("readable", TEXT, "The name as people read it."),
];

const OPERATIONS: [Column; 20] = [
    column(
        "op",
        INTEGER,
        "Global issue index at entry: the id of the operation, `g` of the trace.",
    ),
    nullable("exit", INTEGER, "Issue index at return; null where the call never returned."),
    column("process", INTEGER, "Id in `processes`."),
    column("thread", INTEGER, "Id of the thread in the trace."),
    column("api", TEXT, "Exact entry point."),
    column("call", TEXT, "The same as the program calls it, where stacks tell it."),
    column(
        "action",
        TEXT,
        "Effect of the call, as `action` of the [trace's schema](schema.md#codes).",
    ),
    nullable("stream", INTEGER, "Id in `streams`."),
    nullable("context", INTEGER, "Context that the call is about."),
    nullable("event", INTEGER, "Id of the event in the trace."),
    nullable("allocation", INTEGER, "Id in `allocations`: what the call makes or frees."),
    nullable("kernel", INTEGER, "Id in `kernels`: what the call launches."),
    nullable("graph", INTEGER, "Id of the graph in the trace."),
    nullable("source", TEXT, "Source memory of a copy."),
    nullable("destination", TEXT, "Destination memory of a copy or memset."),
    nullable("bytes", INTEGER, "Bytes that a copy moves."),
    nullable(
        "start_ns",
        INTEGER,
        "Host time at entry, in ns of the machine's `CLOCK_MONOTONIC`: comparable among the traces of a machine, until it is started again.",
    ),
    nullable(
        "duration_ns",
        INTEGER,
        "Host time from entry to return. No column holds a time of the GPU.",
    ),
    column("result", INTEGER, "The call's `CUresult`."),
    nullable("stack", INTEGER, "Id in `stacks`."),
];

const ACCESSES: [Column; 12] = [
    column("op", INTEGER, "Id in `operations`."),
    column("position", INTEGER, "Position among the accesses of the operation, from 0."),
    column("allocation", INTEGER, "Id in `allocations`."),
    column("mode", TEXT, "`read`, `write`, ..., as reports say it."),
    column("basis", TEXT, "What the access is known from: `assumed` to `measured`."),
    column("start", UNSIGNED, "First byte touched."),
    column("length", INTEGER, "Bytes from the first to the last one touched."),
    nullable(
        "width",
        INTEGER,
        "Of an access to rows: bytes of a row; null where all bytes are touched. The next four likewise.",
    ),
    nullable("pitch", INTEGER, "Bytes from one row to the next."),
    nullable("rows", INTEGER, "Rows of a slice."),
    nullable("slice_pitch", INTEGER, "Bytes from one slice to the next."),
    nullable("slices", INTEGER, "Slices."),
];

const EDGES: [Column; 4] = [
    column("from_op", INTEGER, "The earlier operation."),
    column("to_op", INTEGER, "The later one."),
    column(
        "kind",
        TEXT,
        "Cause of the edge, as `edge kind` of the [trace's schema](schema.md#codes).",
    ),
    column("tier", TEXT, "`documented` or `incidental`."),
];

const FINDINGS: [Column; 37] = [
    column("id", TEXT, "Equal in every trace that has the mistake."),
    column("severity", TEXT, "`race`, `latent` or `lint`."),
    column("class", TEXT, "Class of the mistake: [findings](findings/README.md)."),
    nullable("kind", TEXT, "`RAW`, `WAR`, `WAW`, ...; null of a lint."),
    nullable("confidence", TEXT, "`certain`, `likely` or `possible`; null of a lint."),
    column("fails", FLAG, "Whether it reaches the threshold and counts."),
    column("disposition", TEXT, "`open`, `suppressed`, `known` or `known upstream`."),
    column("occurrences", INTEGER, "How often it occurs in the trace."),
    column("first_op", INTEGER, "The operation of the first occurrence."),
    column("last_op", INTEGER, "That of the last one."),
    column("title", TEXT, "The finding in a line."),
    nullable("allocation", INTEGER, "Id in `allocations`: the memory that both touch."),
    nullable("memory", TEXT, "That memory: its name in backquotes, or its kind."),
    nullable("start", UNSIGNED, "First byte touched by both."),
    nullable("length", INTEGER, "Bytes touched by both."),
    column("first_side_op", INTEGER, "The earlier operation; the call itself of a lint."),
    nullable("first_side_stream", INTEGER, "Its stream; null for the host."),
    column("first_side_api", TEXT, "Its entry point."),
    nullable("first_side_kernel", TEXT, "The mangled name of its kernel, for launches."),
    nullable("first_side_mode", TEXT, "Mode of the access."),
    nullable("first_side_basis", TEXT, "What the access is known from."),
    nullable("first_side_file", TEXT, "The line of the program that made the call: its file."),
    nullable("first_side_line", INTEGER, "Its number."),
    nullable("first_side_function", TEXT, "Its function."),
    nullable("first_side_stack", INTEGER, "Id in `stacks`."),
    nullable("second_side_op", INTEGER, "The later operation, or the other call of a lint."),
    nullable("second_side_stream", INTEGER, "Its stream; null for the host."),
    nullable("second_side_api", TEXT, "Its entry point."),
    nullable("second_side_kernel", TEXT, "The mangled name of its kernel, for launches."),
    nullable("second_side_mode", TEXT, "Mode of the access."),
    nullable("second_side_basis", TEXT, "What the access is known from."),
    nullable("second_side_file", TEXT, "The line of the program that made the call: its file."),
    nullable("second_side_line", INTEGER, "Its number."),
    nullable("second_side_function", TEXT, "Its function."),
    nullable("second_side_stack", INTEGER, "Id in `stacks`."),
    nullable("masked_by", INTEGER, "The call that orders a latent pair today."),
    nullable("fix", TEXT, "The fix in a sentence, where there is one."),
];

const STACKS: [Column; 9] = [
    column("stack", INTEGER, "Id in the trace."),
    column("depth", INTEGER, "0 for the innermost function."),
    nullable("function", TEXT, "The function."),
    nullable("file", TEXT, "Source file, as debug information names it."),
    nullable("line", INTEGER, "Line, from 1."),
    column("is_inlined", FLAG, "Whether it was inlined into the next one."),
    column("origin", TEXT, "`program` or `library`."),
    nullable("image", TEXT, "Executable or library; null for Python."),
    nullable("offset", UNSIGNED, "The return address, as a virtual address of that file."),
];

const RANGES: [Column; 10] = [
    column("kind", TEXT, "`pushed`, `started` or `mark`."),
    column("process", INTEGER, "Id in `processes`."),
    column("thread", INTEGER, "Id of the thread in the trace."),
    column("depth", INTEGER, "Of a pushed range: the number of ranges around it."),
    column("begin_op", INTEGER, "Issue index at its begin; operations within have larger ones."),
    nullable("end_op", INTEGER, "Issue index at its end; null where it had not ended."),
    nullable("domain", TEXT, "Its domain; null for the default one."),
    column("name", TEXT, "Its name."),
    column("start_ns", INTEGER, "Host time of its begin, as in `operations`."),
    nullable("duration_ns", INTEGER, "Until its end; null where it had not ended."),
];
