//! No damage makes a racy or incomplete trace a clean one: pages of the file put over other pages, bits
//! turned, rows changed behind the recorder's back. What `check` says is then an error, or not CLEAN.
//!
//! Which damage is tried follows from a seed. `STREAMSAN_DAMAGES` sets how many times, and
//! `STREAMSAN_SEED` another seed: `STREAMSAN_DAMAGES=100000 cargo test --release -p streamsan
//! damaged_traces`.

use super::source_lines::SourceLines;
use super::trace::Concluded;
use super::write_report::write_report;
use crate::options::ReportFormat;
use rusqlite::Connection;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use streamsan_analysis::HostModel;
use streamsan_collect::{Recorder, Silent};
use streamsan_model::{IncompleteReason, Threshold, Verdict};
use streamsan_store::{Coverage, EntryPoint, Meta, Treatment, Writer};

const TRIES: u64 = 600;
const PAGE: usize = 4096;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

pub(super) fn meta() -> Meta {
    Meta {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: chrono::DateTime::UNIX_EPOCH,
        command: vec!["program".to_owned()],
        host: String::new(),
        driver: String::new(),
        extra: Default::default(),
    }
}

/// Records a text trace, and says what the run came to.
fn record(path: &Path, text: &str, reasons: Vec<IncompleteReason>) {
    let trace = streamsan_text::parse(text).expect("a text trace");
    let writer = Writer::create(path, &meta()).expect("the trace is made");
    let mut recorder =
        Recorder::new(path, writer, false, None, HostModel::default(), Arc::new(Silent));
    let mut calls = 0;
    for item in trace.items {
        calls += 1;
        recorder.item(&item);
    }
    let treatment = Treatment::Recorded;
    let counted = EntryPoint { name: "cuLaunchKernel".to_owned(), treatment, calls };
    let mut coverage = Coverage { entry_points: vec![counted], ..Coverage::default() };
    if let [IncompleteReason::NotUnderstood { api, calls }] = reasons.as_slice() {
        let (name, treatment) = (api.clone(), Treatment::NotUnderstood);
        coverage.entry_points.push(EntryPoint { name, treatment, calls: *calls });
    }
    recorder.finish(false, coverage, reasons);
}

/// The verdict of `check`; an error is no verdict. The page of the trace reads tables that the verdict
/// does not need: it is made or refused.
fn verdict(path: &Path) -> Option<Verdict> {
    let concluded = Concluded::open(path, false).ok()?;
    let report = concluded.report(Threshold::default());
    let (whole, mut sources) = (concluded.whole(), SourceLines::default());
    drop(write_report(ReportFormat::Html, &report, whole, &mut sources, &mut io::sink()));
    Some(report.verdict().clone())
}

fn passes(path: &Path) -> bool {
    matches!(verdict(path), Some(Verdict::Clean | Verdict::NoCuda))
}

/// Traces that are not clean: small ones with much in them, and one whose tables have several pages.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/fail");
    let text = |name: &str| fs::read_to_string(corpus.join(name)).expect("a trace of the corpus");
    let not_understood =
        IncompleteReason::NotUnderstood { api: "cuMulticastCreate".to_owned(), calls: 2 };
    let ordered =
        "launch s1 produce w:A\nrecord e s1\nwait s2 e\nlaunch s2 consume r:A\nsync_ctx\n";
    let racy = "launch s1 produce w:A\nlaunch s2 consume r:A\nsync_ctx\n";
    let long = ordered.repeat(200) + racy + &ordered.repeat(50);
    let batches = "copies/batch_entries.trace";
    [
        (text(batches), vec![]),
        (text("copies/array_boxes.trace"), vec![]),
        (ordered.to_owned(), vec![not_understood]),
        (ordered.to_owned(), vec![IncompleteReason::DroppedRecords(1)]),
        (long, vec![]),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (text, reasons))| {
        let path = folder.join(format!("{n}.db"));
        record(&path, &text, reasons);
        let verdict = verdict(&path);
        assert!(
            matches!(verdict, Some(Verdict::Racy | Verdict::Incomplete(_))),
            "trace {n}: {verdict:?}"
        );
        path
    })
    .collect()
}

/// A page over another one.
fn page_over_page(file: &mut [u8], random: &mut Random) -> String {
    let pages = file.len() / PAGE;
    let (from, to) = (random.below(pages), random.below(pages));
    file.copy_within(from * PAGE..(from + 1) * PAGE, to * PAGE);
    format!("page {from} over page {to}")
}

fn turned_bit(file: &mut [u8], random: &mut Random) -> String {
    // Half of them where it says what the file is.
    let end = if random.below(2) == 0 { file.len() } else { 3 * PAGE };
    let (at, bit) = (random.below(end), random.below(8));
    file[at] ^= 1 << bit;
    format!("bit {bit} of byte {at}")
}

fn other_bytes(file: &mut [u8], random: &mut Random) -> String {
    let (at, length) = (random.below(file.len() - 64), 1 + random.below(64));
    let with = [0, 0xff, random.next() as u8][random.below(3)];
    file[at..at + length].fill(with);
    format!("{length} bytes of {with} at {at}")
}

/// A statement that changes the trace.
fn change(connection: &Connection, random: &mut Random) -> String {
    let list = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).expect("the file is whole");
        let rows = statement.query_map([], |row| row.get(0)).expect("the file is whole");
        rows.collect::<Result<_, _>>().expect("texts")
    };
    let tables = list("SELECT name FROM sqlite_schema WHERE type = 'table'");
    let table = random.of(&tables);
    let columns = list(&format!("SELECT name FROM pragma_table_info('{table}')"));
    let column = random.of(&columns);
    let all = columns.join(", ");
    let pick =
        |random: &mut Random| format!("SELECT * FROM {table} LIMIT 1 OFFSET {}", random.below(5));
    let value = *random.of(&["0", "1", "NULL", "-1", "7", "'x'", "2.5", "x'00'", "1 << 40"]);
    let first = &columns[0];
    match random.below(7) {
        0 => format!("DELETE FROM {table}"),
        1 => format!("DELETE FROM {table} WHERE ({all}) = ({})", pick(random)),
        2 => format!("DELETE FROM {table} WHERE {first} > (SELECT avg({first}) FROM {table})"),
        3 => format!("UPDATE OR REPLACE {table} SET {column} = {value}"),
        4 => format!("UPDATE OR REPLACE {table} SET {column} = {column} + 1"),
        5 => {
            // Every value goes to another row.
            let other = format!("SELECT {column} FROM {table} b WHERE b.{first} <> a.{first}");
            format!("UPDATE OR IGNORE {table} AS a SET {column} = coalesce(({other}), {column})")
        }
        _ => format!("INSERT OR REPLACE INTO {table} {}", pick(random)),
    }
}

#[test]
fn no_damage_makes_a_trace_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = traces(folder.path());
    let files: Vec<Vec<u8>> = whole.iter().map(|path| fs::read(path).expect("a file")).collect();
    let path = folder.path().join("damaged.db");
    let seed = number("STREAMSAN_SEED").unwrap_or(1);
    let tries = number("STREAMSAN_DAMAGES").unwrap_or(TRIES);
    let mut wrong = Vec::new();
    for number in 0..tries {
        let mut random = Random(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let trace = random.below(files.len());
        let mut file = files[trace].clone();
        let damage = match random.below(4) {
            0 => page_over_page(&mut file, &mut random),
            1 => turned_bit(&mut file, &mut random),
            2 => other_bytes(&mut file, &mut random),
            _ => {
                let connection = Connection::open(&whole[trace]).expect("the trace opens");
                change(&connection, &mut random)
            }
        };
        fs::write(&path, &file).expect("there is room");
        if file == files[trace] {
            // A statement; one that is no good changes nothing.
            let connection = Connection::open(&path).expect("the trace opens");
            let _ = connection.execute_batch(&damage);
        }
        match catch_unwind(AssertUnwindSafe(|| passes(&path))) {
            Ok(false) => {}
            Ok(true) => wrong.push(format!("{number}, trace {trace}: clean after {damage}")),
            Err(_) => wrong.push(format!("{number}, trace {trace}: panic after {damage}")),
        }
    }
    assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
}

/// Each table of each trace emptied, by hand, one after the other.
#[test]
fn no_emptied_table_makes_a_trace_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("damaged.db");
    for whole in traces(folder.path()) {
        let connection = Connection::open(&whole).expect("the trace opens");
        let mut tables = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .expect("the file is whole");
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).expect("names");
        for table in tables.map(|name| name.expect("a name")) {
            fs::copy(&whole, &path).expect("there is room");
            let damaged = Connection::open(&path).expect("the trace opens");
            damaged.execute_batch(&format!("DELETE FROM {table}")).expect("it can be emptied");
            drop(damaged);
            assert!(!passes(&path), "{}: {table} emptied", whole.display());
        }
    }
}
