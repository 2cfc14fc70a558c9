//! Tables of findings, lints, stacks and frames.

use super::super::column::Table;
use super::super::column::Unit::{Address, Bytes, Code, Id, Number};
use super::{ID, INT, MAYBE, c, t};

pub(super) const TABLES: &[Table] = &[
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
];
