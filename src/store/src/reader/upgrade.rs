//! Traces of earlier schemas, read as if they were of this one.
//!
//! The file does not change: views in the connection's own temporary database stand in front of
//! tables that have changed since, and in place of tables that did not exist.

use rusqlite::Connection;

/// Schema 1 had no graphs, no calls that do several things at once, no aliases and no lints.
const FROM_1: &str = "
    CREATE TEMP VIEW context AS
        SELECT *, NULL AS parent, 1 AS concurrent_managed_access FROM main.context;
    CREATE TEMP VIEW event AS SELECT *, 0 AS is_imported FROM main.event;
    CREATE TEMP VIEW allocation AS
        SELECT *, NULL AS backing, NULL AS backing_offset, NULL AS stack FROM main.allocation;
    CREATE TEMP VIEW op AS SELECT *, NULL AS graph FROM main.op;
    CREATE TEMP VIEW graph AS SELECT NULL AS id, NULL AS process, NULL AS name WHERE 0;
    CREATE TEMP VIEW lint AS SELECT NULL AS id, NULL AS fingerprint, NULL AS class, NULL AS op,
        NULL AS api, NULL AS stream, NULL AS event, NULL AS related, NULL AS stack,
        NULL AS related_stack WHERE 0;
";

/// Schemas 1 and 2 had tables for images that nothing was ever written to, and knew nothing of code.
const FROM_2: &str = "
    CREATE TEMP VIEW module AS
        SELECT NULL AS id, NULL AS process, NULL AS hash, NULL AS size, NULL AS path,
        NULL AS offset WHERE 0;
    CREATE TEMP VIEW kernel AS SELECT id, name FROM main.kernel;
    CREATE TEMP VIEW kernel_code AS
        SELECT NULL AS kernel, NULL AS module, NULL AS source, NULL AS reason,
        NULL AS waits_on_primary WHERE 0;
    CREATE TEMP VIEW kernel_word AS
        SELECT NULL AS kernel, NULL AS ordinal, NULL AS param, NULL AS offset, NULL AS kind,
        NULL AS mode, NULL AS is_table WHERE 0;
    CREATE TEMP VIEW kernel_global AS
        SELECT NULL AS kernel, NULL AS ordinal, NULL AS name, NULL AS mode, NULL AS is_table
        WHERE 0;
";

/// Schemas 1 to 3 had tables for host stacks that nothing was ever written to. What an older schema
/// did not have at all has its view by now.
const FROM_3: &str = "
    CREATE TEMP VIEW IF NOT EXISTS allocation AS SELECT *, NULL AS stack FROM main.allocation;
    CREATE TEMP VIEW graph_node AS SELECT *, NULL AS stack FROM main.graph_node;
    CREATE TEMP VIEW finding_access AS SELECT *, NULL AS stack FROM main.finding_access;
    CREATE TEMP VIEW IF NOT EXISTS lint AS
        SELECT *, NULL AS stack, NULL AS related_stack FROM main.lint;
    CREATE TEMP VIEW frame AS
        SELECT NULL AS id, NULL AS image, NULL AS build_id, NULL AS offset WHERE 0;
    CREATE TEMP VIEW frame_source AS
        SELECT NULL AS frame, NULL AS ordinal, NULL AS function, NULL AS file, NULL AS line,
        NULL AS is_inlined WHERE 0;
";

/// Schemas 1 to 4 knew two kinds of edges. What they did not know of kernels is 0 in `flags`: all that
/// a kernel touches comes behind its wait, and it never triggers. That reports nothing false.
const FROM_4: &str = "
    CREATE TEMP VIEW graph_edge AS SELECT *, is_programmatic AS port FROM main.graph_edge;
";

/// Schemas 1 to 7 had no ranges.
const FROM_7: &str = "
    CREATE TEMP VIEW nvtx_range AS
        SELECT NULL AS g, NULL AS exit_after, NULL AS process, NULL AS thread, NULL AS kind,
        NULL AS domain, NULL AS name, NULL AS depth, NULL AS start_ns, NULL AS duration_ns WHERE 0;
";

/// Makes a trace of schema `found` look like one of this version. `false` for a version that never
/// was.
pub(super) fn upgrade(connection: &Connection, found: i32) -> rusqlite::Result<bool> {
    match found {
        1 => connection.execute_batch(FROM_1).and_then(|()| upgrade(connection, 2)),
        2 => connection.execute_batch(FROM_2).and_then(|()| upgrade(connection, 3)),
        3 => connection.execute_batch(FROM_3).and_then(|()| upgrade(connection, 4)),
        4 => connection.execute_batch(FROM_4).and_then(|()| upgrade(connection, 5)),
        // Schemas 1 to 5 had another table of edges and indexes beside it: what asks for edges looks
        // which it is. They had no proof of what their tables hold.
        5 => upgrade(connection, 6),
        // Schema 6 had the same tables. Its traces call strong accesses weak, which hides nothing, and
        // know of no measured ones.
        6 => upgrade(connection, 7),
        7 => connection.execute_batch(FROM_7).map(|()| true),
        _ => Ok(false),
    }
}
