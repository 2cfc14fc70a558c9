//! Tables that are made of the others: the level of detail, coverage, the proof.

use super::super::column::Table;
use super::super::column::Unit::{Bits, Code, Id, Nanoseconds, Number, Packed, Text};
use super::{ID, INT, MAYBE, c, t};

pub(super) const TABLES: &[Table] = &[
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
