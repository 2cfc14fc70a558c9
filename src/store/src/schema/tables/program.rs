//! Tables of the recording itself and of what the program has: processes, threads, contexts, streams,
//! events, memory, modules and kernels.

use super::super::column::Table;
use super::super::column::Unit::{
    Address, Bits, Bytes, Code, Id, Index, Nanoseconds, Number, Text,
};
use super::{ID, INT, MAYBE, c, t};

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "meta",
        doc: "Facts about the recording. `state` is `recording` (still being written, or killed), \
              `complete` or `truncated`; `clock_base_ns` is added to the times of `op`; \
              `argument.N` are the words of the command line; `waited_for_recording_ms` is how long the threads of the program waited for the recording, all together, where they did; `directory`, `environment.NAME` (variables that decide what CUDA does) and `option.NAME` are how the program was run; `clock.monotonic_ns` is the monotonic clock at `started_at`, and `clock.boot` tells the boot of the machine, from which that clock counts; `rank` and `local_rank` are the number of the process in its job.",
        key: Some("key"),
        columns: &[
            c("key", "TEXT NOT NULL", Text, "Name of the fact."),
            c("value", "TEXT NOT NULL", Text, "Its value; times are RFC 3339 in UTC."),
        ],
    },
    t(
        "string",
        "Every text of the other tables, once; names of ranges may be there more than once, where a \
         program has very many.",
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
    Table {
        name: "nvtx_range",
        doc: "Ranges and marks by which the program names its phases, as NVTX tells them. A row is \
              written when its range has ended, or the recording has.",
        key: Some("kind, thread, depth, g"),
        columns: &[
            c("kind", INT, Code("nvtx kind"), "How it begins and ends."),
            c("thread", INT, Id("thread"), "The thread that began it."),
            c(
                "depth",
                INT,
                Number,
                "Of a pushed range: the lowest number that no range open on the thread at its begin \
                 has, so that ranges of one thread and depth do not overlap; else 0.",
            ),
            c("g", INT, Index, "Global issue index at its begin, which is no other's."),
            c(
                "exit_after",
                MAYBE,
                Index,
                "Issue index at its end less `g`, 0 for a mark; NULL: it had not ended.",
            ),
            c("process", INT, Id("process"), "Its process."),
            c("domain", MAYBE, Id("string"), "Name of its domain; NULL: the default domain."),
            c("name", INT, Id("string"), "Its name."),
            c("start_ns", INT, Nanoseconds, "Host time of its begin, as in `op`."),
            c("duration_ns", INT, Nanoseconds, "Until its end; 0 where it had not ended."),
        ],
    },
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
];
