//! The schema as users see it: its document, its views, its golden file, its size.

use crate::common;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;
use streamsan_model::{ByteRange, Extent, HostTime, NvtxRange, OpSeq, TraceItem};
use streamsan_store::{Reader, SCHEMA_VERSION, TraceState, Writer, schema_document};
use streamsan_testing::golden;

fn in_package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn document_is_up_to_date() {
    let path = in_package("../../docs/schema.md");
    golden::check(&path, &schema_document());
}

/// The golden file of the current schema, written by `BLESS=1` where there is none yet: one that is
/// there stays as it was written.
fn golden() -> PathBuf {
    static BLESSED: Once = Once::new();
    let path = in_package(&format!("tests/golden/schema-{SCHEMA_VERSION}.db"));
    BLESSED.call_once(|| {
        if golden::is_blessed() && !path.exists() {
            common::write_everything(&path);
        }
    });
    path
}

/// The trace of this schema, written once and kept: every later version reads it.
#[test]
fn golden_trace_opens() {
    let reader = Reader::open(&golden()).unwrap();
    assert_eq!(reader.state(), TraceState::Complete);
    assert_eq!(reader.meta().unwrap(), common::meta());
    let items: Vec<TraceItem> = reader.items().map(Result::unwrap).collect();
    assert_eq!(items, common::items());
    assert_eq!(ranges(&reader), common::ranges());
    assert_eq!(reader.edges().unwrap(), common::edges());
    assert_eq!(reader.findings().unwrap(), common::findings());
    assert_eq!(reader.lints().unwrap(), common::lints());
    assert_eq!(reader.coverage().unwrap(), common::coverage());
}

fn ranges(reader: &Reader) -> Vec<NvtxRange> {
    let mut ranges = Vec::new();
    reader.each_range(|range| ranges.push(range)).unwrap();
    ranges
}

#[test]
fn golden_trace_of_schema_1_opens() {
    opens_as_it_was(1);
}

#[test]
fn golden_trace_of_schema_2_opens() {
    opens_as_it_was(2);
}

#[test]
fn golden_trace_of_schema_3_opens() {
    opens_as_it_was(3);
}

#[test]
fn golden_trace_of_schema_4_opens() {
    opens_as_it_was(4);
}

#[test]
fn golden_trace_of_schema_5_opens() {
    opens_as_it_was(5);
}

#[test]
fn golden_trace_of_schema_6_opens() {
    opens_as_it_was(6);
}

#[test]
fn golden_trace_of_schema_7_opens() {
    opens_as_it_was(7);
}

/// A trace of an earlier schema: everything in it as it was, which a text beside it says.
fn opens_as_it_was(schema: i32) {
    let reader = Reader::open(&in_package(&format!("tests/golden/schema-{schema}.db"))).unwrap();
    assert_eq!(reader.state(), TraceState::Complete);
    let items: Vec<TraceItem> = reader.items().map(Result::unwrap).collect();
    let coverage = reader.coverage().unwrap();
    if schema < 8 {
        assert_eq!(ranges(&reader), []);
        assert_eq!(reader.ranges_of(OpSeq(1)).unwrap(), []);
    }
    // The texts are older than these columns.
    let mut without = vec!["stack: None,", "related_stack: None,", "host_accesses: None,"];
    if schema < 7 {
        assert_eq!(coverage.measured, []);
        without.push("measured: [],");
    }
    if schema < 3 {
        assert_eq!(coverage.kernels, []);
        without.push("kernels: [],");
    }
    let found = format!(
        "{items:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{coverage:#?}\n",
        reader.meta().unwrap(),
        reader.edges().unwrap(),
        reader.findings().unwrap(),
        reader.lints().unwrap(),
    );
    let lines = found.split_inclusive('\n').filter(|line| !without.contains(&line.trim()));
    let found: String = lines.collect();
    let path = in_package(&format!("tests/golden/schema-{schema}.txt"));
    if golden::is_blessed() && !path.exists() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(found == expected, "schema-{schema}.db no longer reads as its text beside it says");
}

/// A change of the schema without a new version would leave golden files that this build did not
/// write: the tables of a new trace are those of the golden one.
#[test]
fn golden_trace_has_the_tables_of_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    let schema = |path: &Path| -> BTreeSet<String> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = Connection::open_with_flags(path, flags).unwrap();
        let mut statement =
            connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    assert_eq!(schema(&path), schema(&golden()));
}

#[test]
fn every_table_of_the_design_exists() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    let connection = Connection::open(&path).unwrap();
    for table in [
        "meta",
        "process",
        "thread",
        "context",
        "stream",
        "event",
        "allocation",
        "module",
        "kernel",
        "kernel_param",
        "kernel_code",
        "kernel_word",
        "kernel_global",
        "nvtx_range",
        "op",
        "access",
        "edge",
        "finding",
        "finding_access",
        "stack",
        "frame",
        "frame_source",
        "string",
        "coverage",
    ] {
        connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
    }
}

/// The questions that people ask of exports of Nsight Systems.
#[test]
fn queries_for_nsight_exports_work() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    common::write_everything(&path);
    let connection = Connection::open(&path).unwrap();
    let one = |sql: &str| -> String {
        connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
    };
    let number = |sql: &str| -> i64 {
        connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
    };
    assert_eq!(
        one("SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s \
             ON s.id = k.demangledName WHERE k.streamId = 1 AND k.deviceId = 0 LIMIT 1"),
        "_Z5scalePfi"
    );
    assert_eq!(
        one("SELECT s.value FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN CUPTI_ACTIVITY_KIND_RUNTIME r \
             ON r.correlationId = m.correlationId JOIN StringIds s ON s.id = r.nameId \
             WHERE m.copyKind = 1 AND m.srcKind = 2 AND m.dstKind = 3 AND m.bytes = 4096"),
        "cuMemcpyHtoDAsync_v2"
    );
    assert_eq!(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 10"), 1);
    assert_eq!(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET"), 2);
    assert_eq!(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), 4);
    assert_eq!(
        number("SELECT globalTid / 0x1000000 % 0x1000000 FROM CUPTI_ACTIVITY_KIND_RUNTIME"),
        4242
    );
    let calls = common::operations().len() as i64;
    assert_eq!(number("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), calls);
    for view in ["KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION"] {
        let known = format!(
            "SELECT count(start) + count(end) FROM CUPTI_ACTIVITY_KIND_{view} \
             WHERE deviceId IS NOT NULL"
        );
        assert_eq!(number(&known), 0, "{view}");
    }
    assert_eq!(
        number(
            "SELECT count(*) FROM op JOIN enumeration e ON e.code = op.action \
                AND e.name = 'action' WHERE e.word = 'launch' AND op.exit = op.g + 1"
        ),
        3
    );
}

/// Ordinary operations and accesses of a long run, indexes included. The budgets leave room for
/// programs that are less ordinary.
#[test]
fn rows_stay_within_their_budgets() {
    const OPERATIONS: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.db");
    let mut writer = Writer::create(&path, &common::meta()).unwrap();
    common::entities()
        .into_iter()
        .for_each(|entity| writer.item(&TraceItem::Entity(entity)).unwrap());
    let shapes = [common::operations().swap_remove(5), common::operations().swap_remove(10)];
    let access = common::operations()[1].accesses[0].clone();
    for n in 0..OPERATIONS {
        let mut operation = shapes[n as usize % 2].clone();
        let start_ns = 5_000_000_000_000_000 + n * 3_000;
        operation.g = OpSeq(10_000_000 + 2 * n);
        operation.exit = Some(OpSeq(10_000_001 + 2 * n));
        operation.time = Some(HostTime { start_ns, end_ns: start_ns + 2_500 });
        operation.accesses = vec![access.clone(); 2];
        for access in &mut operation.accesses {
            access.allocation.0 = (n % 5000) as u32;
            access.extent =
                Extent::Range(ByteRange::with_len(0x7f00_0000_0000 + n * 65_536, 65_536));
        }
        writer.item(&TraceItem::Operation(operation)).unwrap();
    }
    writer.finalize().unwrap();
    let connection = Connection::open(&path).unwrap();
    let bytes = |names: [&str; 2]| -> f64 {
        connection
            .query_row(
                "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN (?, ?)",
                names,
                |row| row.get(0),
            )
            .unwrap()
    };
    let per_operation = bytes(["op", "op_part"]) / OPERATIONS as f64;
    let per_access = bytes(["access", "access_pattern"]) / (2 * OPERATIONS) as f64;
    println!("{per_operation:.1} bytes an operation, {per_access:.1} bytes an access");
    assert!(per_operation > 20.0 && per_operation <= 64.0, "{per_operation}");
    assert!(per_access > 15.0 && per_access <= 48.0, "{per_access}");
}
