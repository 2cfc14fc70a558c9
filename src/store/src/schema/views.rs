//! Views under the names of Nsight Systems' SQLite export, so that existing queries work.
//!
//! GPU start and end are NULL: no trace holds times of the GPU. The numbers of `copyKind`,
//! `srcKind` and `syncType` are those of CUPTI's activity records.

#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) sql: &'static str,
}

/// Memory kind code to `CUpti_ActivityMemoryKind`: device 3, managed 5, pinned 2, pageable 1,
/// device static 6.
macro_rules! activity_memory_kind {
    ($column:literal) => {
        concat!(
            "CASE ",
            $column,
            " WHEN 0 THEN 3 WHEN 1 THEN 3 WHEN 2 THEN 5 WHEN 3 THEN 2 WHEN 4 THEN 2 \
             WHEN 5 THEN 1 WHEN 6 THEN 6 ELSE 0 END"
        )
    };
}

/// Process and thread packed as Nsight Systems packs them: 24 bits each.
macro_rules! global_tid {
    () => {
        "((process.pid & 0xffffff) << 24) | (thread.tid & 0xffffff) AS globalTid"
    };
}

macro_rules! global_pid {
    () => {
        "(process.pid & 0xffffff) << 24 AS globalPid"
    };
}

/// Device and context of an operation in a stream.
macro_rules! from_stream_op {
    () => {
        " FROM op JOIN stream ON stream.id = op.stream \
           JOIN context ON context.id = stream.context \
           JOIN process ON process.id = op.process "
    };
}

pub(crate) const VIEWS: &[View] = &[
    View { name: "StringIds", doc: "Texts.", sql: "SELECT id, value FROM string" },
    View {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        doc: "Every recorded call with its host times (ns from `clock_base_ns`).",
        sql: concat!(
            "SELECT op.start_ns AS start, op.end_ns AS end, ",
            global_tid!(),
            ", op.g AS correlationId, op.api AS nameId, op.result AS returnValue, \
             op.stack AS callchainId FROM op JOIN thread ON thread.id = op.thread \
             JOIN process ON process.id = op.process"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        doc: "Kernel launches.",
        sql: concat!(
            "SELECT NULL AS start, NULL AS end, context.device AS deviceId, \
             context.id AS contextId, op.stream AS streamId, op.g AS correlationId, ",
            global_pid!(),
            ", kernel.name AS demangledName, kernel.name AS shortName, \
             kernel.name AS mangledName",
            from_stream_op!(),
            "JOIN kernel ON kernel.id = op.kernel WHERE op.action = 19"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        doc: "Copies. `copyKind` is 1 host to device, 2 device to host, 8 device to device, 9 host \
              to host, 10 peer to peer; 0 where managed memory leaves it open.",
        sql: concat!(
            "SELECT NULL AS start, NULL AS end, context.device AS deviceId, \
             context.id AS contextId, op.stream AS streamId, op.g AS correlationId, ",
            global_pid!(),
            ", op.bytes AS bytes, CASE \
             WHEN op.other IS NOT NULL THEN 10 \
             WHEN op.source = 2 OR op.destination = 2 THEN 0 \
             WHEN op.source IN (3, 4, 5) AND op.destination IN (3, 4, 5) THEN 9 \
             WHEN op.source IN (3, 4, 5) THEN 1 \
             WHEN op.destination IN (3, 4, 5) THEN 2 ELSE 8 END AS copyKind, ",
            activity_memory_kind!("op.source"),
            " AS srcKind, ",
            activity_memory_kind!("op.destination"),
            " AS dstKind",
            from_stream_op!(),
            "WHERE op.action = 20"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        doc: "Memsets.",
        sql: concat!(
            "SELECT NULL AS start, NULL AS end, context.device AS deviceId, \
             context.id AS contextId, op.stream AS streamId, op.g AS correlationId, ",
            global_pid!(),
            ", (SELECT sum(length) FROM access WHERE access.id >= op.g << 24 \
             AND access.id < (op.g + 1) << 24) AS bytes, ",
            activity_memory_kind!("op.destination"),
            " AS memKind",
            from_stream_op!(),
            "WHERE op.action = 21"
        ),
    },
    View {
        name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        doc: "Synchronising calls. `syncType` is 1 event, 2 stream waits for event, 3 stream, 4 \
              context.",
        sql: concat!(
            "SELECT NULL AS start, NULL AS end, context.device AS deviceId, \
             context.id AS contextId, op.stream AS streamId, op.g AS correlationId, ",
            global_pid!(),
            ", CASE op.action WHEN 14 THEN 1 WHEN 10 THEN 2 WHEN 8 THEN 3 ELSE 4 END AS syncType, \
             op.event AS eventId FROM op JOIN process ON process.id = op.process \
             LEFT JOIN stream ON stream.id = op.stream \
             LEFT JOIN event ON event.id = op.event \
             LEFT JOIN context ON context.id = coalesce(op.context, stream.context, event.context) \
             WHERE op.action IN (3, 8, 10, 14)"
        ),
    },
];
