//! The traces of a job as tables, asked by DuckDB: the statements of `docs/fleet.md` as they stand there,
//! and their answers held against what `check` reports of the same traces.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use libtest_mimic::Trial;
use serde_json::Value;

use crate::command::Scratch;
use crate::tools::{DUCKDB, command, project, with};
use crate::{programs, trial};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(DUCKDB, "fleet::questions_of_the_document", questions));
    trials.push(with(DUCKDB, "fleet::columns_are_those_of_the_document", columns));
    trials.push(trial("fleet::broken_traces_and_full_disks", broken_traces_and_full_disks));
}

/// The ranks: trace, program, variant.
const RANKS: [(&str, &str, &str); 5] = [
    ("rank-0", "chunk_pipeline", "clean"),
    ("rank-1", "chunk_pipeline", "racy"),
    ("rank-2", "chunk_pipeline", "clean"),
    ("rank-3", "chunk_pipeline", "racy"),
    ("4", "copy_vs_memset", "racy"),
];

/// Records the ranks into `traces`.
fn record(scratch: &Scratch) {
    for (trace, program, variant) in RANKS {
        let file = format!("traces/{trace}.db");
        let run = ["run", "--sim", "--exit-as-program", "-o", &file, "--"].map(OsStr::new);
        let program = programs::rust(program);
        let arguments: Vec<&OsStr> =
            run.into_iter().chain([program.as_os_str(), OsStr::new(variant)]).collect();
        scratch.finish(&mut scratch.streamsan(&arguments)).expect_code(0);
    }
}

fn export(scratch: &Scratch, arguments: &[&str], code: i32) -> String {
    let first = ["export", "--format", "parquet", "-o", "tables"];
    let all: Vec<&OsStr> = first.iter().chain(arguments).map(|word| OsStr::new(*word)).collect();
    let ended = scratch.finish(&mut scratch.streamsan(&all));
    ended.expect_code(code);
    assert!(ended.stdout.is_empty());
    ended.stderr
}

/// What DuckDB answers to each statement.
fn ask(scratch: &Scratch, statements: &[String]) -> Vec<Value> {
    let folder = project(scratch, "fleet");
    let input = scratch.file("statements.json");
    let text = serde_json::to_string(statements).expect("texts are JSON");
    fs::write(&input, text).expect("room for a file");
    let mut python = command(scratch, scratch.path(), "python3");
    python.arg(folder.join("ask.py"));
    python.stdin(Stdio::from(fs::File::open(input).expect("it was written")));
    let ended = scratch.start(&mut python).wait();
    ended.expect_code(0);
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    fs::read_to_string(path).expect("the document is there")
}

/// The blocks of SQL below a heading of a document, up to the next one.
fn statements(document: &str, heading: &str) -> Vec<String> {
    let below = document.split_once(&format!("\n## {heading}\n")).expect("the heading is there").1;
    let section = below.split("\n## ").next().unwrap_or(below);
    let blocks = section.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or(block).to_owned()).collect()
}

/// The statements that make the views, one after the other.
fn views(document: &str) -> Vec<String> {
    let blocks = statements(document, "Reading them");
    let all = blocks.last().expect("a block of views");
    all.split_inclusive(';')
        .map(str::trim)
        .filter(|view| !view.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The rows of an answer, each by the names of its columns.
fn rows(answer: &Value) -> Vec<BTreeMap<String, Value>> {
    let columns = answer["columns"].as_array().expect("columns");
    let names: Vec<&str> = columns.iter().filter_map(|column| column[0].as_str()).collect();
    let rows = answer["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let cells = row.as_array().expect("a row").iter().cloned();
        names.iter().map(|name| (*name).to_owned()).zip(cells).collect()
    })
    .collect()
}

fn questions() {
    let scratch = Scratch::new();
    record(&scratch);
    assert_eq!(export(&scratch, &["--jobs", "2", "traces"], 0), "");
    let document = document("fleet.md");
    let mut all = views(&document);
    let count = all.len();
    let questions = statements(&document, "Five questions");
    assert_eq!(questions.len(), 5);
    all.extend(questions);
    all.push("SELECT trace, verdict, calls, operations FROM traces ORDER BY trace".to_owned());
    all.push("SELECT count(*) AS n FROM edges".to_owned());
    let answers = ask(&scratch, &all);
    let [mistakes, spared, users, order, waits, traces, edges] = &answers[count..] else {
        panic!("an answer to each: {answers:#?}")
    };

    let check = ["check", "--json", "traces"].map(OsStr::new);
    let check = scratch.finish(&mut scratch.streamsan(&check));
    check.expect_code(1);
    let report: Value = serde_json::from_slice(&check.stdout).expect("JSON");
    let findings = report["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 3, "{report:#}");

    // Which mistakes, in how many ranks.
    let mistakes = rows(mistakes);
    assert_eq!(mistakes.len(), findings.len());
    for mistake in &mistakes {
        let same = |finding: &&Value| finding["id"] == mistake["id"];
        let finding = findings.iter().find(same).expect("check has it");
        let in_traces = finding["in_traces"].as_array().expect("a list").len();
        assert_eq!(mistake["in_traces"], in_traces);
        assert_eq!(
            mistake["occurrences"].to_string().trim_matches('"'),
            finding["count"].to_string()
        );
        assert_eq!(mistake["class"], finding["class"]);
        let place = &finding["accesses"][1]["place"];
        let told = mistake["place"].as_str().expect("a place");
        assert!(told.ends_with(&format!(":{}", place["line"])), "{told} {place}");
    }
    assert_eq!(mistakes[0]["in_traces"], 2, "the one of two ranks comes first");

    // Which ranks it spares: of each mistake those that check does not name.
    let name = |trace: &Value| match trace["trace"].as_str().expect("a name") {
        "traces/4.db" => "trace-4".to_owned(),
        file => file.trim_start_matches("traces/").trim_end_matches(".db").to_owned(),
    };
    let names: Vec<String> =
        report["traces"].as_array().expect("a list").iter().map(name).collect();
    let mut expected = BTreeSet::new();
    for finding in findings {
        let has = finding["in_traces"].as_array().expect("a list").iter();
        let has: Vec<u64> = has.filter_map(|at| at["trace"].as_u64()).collect();
        let spared = (0u64..).zip(&names).filter(|(position, _)| !has.contains(position));
        let id = finding["id"].as_str().expect("an id").to_owned();
        expected.extend(spared.map(|(_, name)| (id.clone(), name.clone())));
    }
    let text = |row: &BTreeMap<String, Value>, column: &str| {
        row[column].as_str().unwrap_or_else(|| panic!("{column}: {row:?}")).to_owned()
    };
    let told: BTreeSet<_> =
        rows(spared).iter().map(|r| (text(r, "id"), text(r, "trace"))).collect();
    assert_eq!(told, expected);

    // Who uses the buffers: both sides of each finding are among them.
    let users = rows(users);
    for finding in findings {
        let told_by = names[finding["told_by"].as_u64().expect("a number") as usize].clone();
        for side in finding["accesses"].as_array().expect("two") {
            let is_side = |row: &&BTreeMap<String, Value>| {
                row["trace"] == told_by && row["id"] == finding["id"] && row["op"] == side["op"]
            };
            let row = users.iter().find(is_side).unwrap_or_else(|| panic!("{side:#}: {users:#?}"));
            assert_eq!((&row["call"], &row["stream"]), (&side["call"], &side["stream"]));
        }
    }

    // What orders the streams: every edge once.
    let edges = rows(edges)[0]["n"].as_u64().expect("a number");
    let told: u64 = rows(order).iter().filter_map(|row| row["edges"].as_u64()).sum();
    assert!(edges > 0 && told == edges, "{told} of {edges}");

    // Where they wait: lines of the program.
    let waits = rows(waits);
    assert!(!waits.is_empty());
    for row in &waits {
        let file = text(row, "file");
        assert!(file.ends_with(".rs") && row["line"].as_u64().is_some(), "{row:?}");
    }

    let traces = rows(traces);
    let told: Vec<_> =
        traces.iter().map(|row| (text(row, "trace"), text(row, "verdict"))).collect();
    let expected = [
        ("rank-0", "CLEAN"),
        ("rank-1", "RACY"),
        ("rank-2", "CLEAN"),
        ("rank-3", "RACY"),
        ("trace-4", "RACY"),
    ];
    assert_eq!(told, expected.map(|(trace, verdict)| (trace.to_owned(), verdict.to_owned())));
}

/// Every engine sees the columns that the document names, with their types, in every table; also where a
/// table has no row.
fn columns() {
    let scratch = Scratch::new();
    let clean = "stream s1\nlaunch s1 fill w:A\n";
    fs::write(scratch.file("one.trace"), clean).expect("room for a file");
    assert_eq!(export(&scratch, &["one.trace"], 0), "");
    let tables = document("tables.md");
    let mut all = views(&document("fleet.md"));
    let count = all.len();
    let documented: Vec<&str> = tables.split("\n### ").skip(1).collect();
    assert_eq!(documented.len(), count);
    let name = |section: &&str| section.lines().next().unwrap_or_default().to_owned();
    all.extend(documented.iter().map(|section| format!("SELECT * FROM {}", name(section))));
    let answers = ask(&scratch, &all);
    for (section, answer) in documented.iter().zip(&answers[count..]) {
        let columns = section.lines().filter(|line| line.starts_with("| `"));
        let expected: Vec<(String, String)> = columns
            .map(|line| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                let kind = match cells[2].split(',').next() {
                    Some("integer") => "BIGINT",
                    Some("unsigned") => "UBIGINT",
                    Some("text") => "VARCHAR",
                    Some("flag") => "BOOLEAN",
                    other => panic!("{other:?}"),
                };
                (cells[1].trim_matches('`').to_owned(), kind.to_owned())
            })
            .chain([("trace".to_owned(), "VARCHAR".to_owned())])
            .collect();
        let told: Vec<(String, String)> =
            serde_json::from_value(answer["columns"].clone()).expect("names and types");
        assert_eq!(told, expected, "{}", name(section));
    }
}

fn broken_traces_and_full_disks() {
    let scratch = Scratch::new();
    record(&scratch);
    fs::write(scratch.file("traces/torn.db"), "torn").expect("room for a file");
    let said = export(&scratch, &["traces"], 5);
    assert!(said.contains("torn.db is not a trace of streamsan"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let written = |trace: &str| {
        let file = scratch.file("tables/operations").join(format!("trace={trace}/part-0.parquet"));
        fs::read(file).ok()
    };
    let before = written("rank-1").expect("the others are written");
    assert!(written("trace-4").is_some() && written("torn").is_none());
    // Files may not become larger than this: what was there stays.
    let export = "ulimit -f 1; exec \"$@\"";
    let arguments = ["-c", export, "sh"].map(OsStr::new);
    let mut limited = scratch.command(Path::new("sh"), &arguments);
    limited.arg(crate::command::streamsan());
    limited.args(["export", "--format", "parquet", "-o", "tables", "traces/rank-1.db"]);
    let ended = scratch.finish(&mut limited);
    ended.expect_code(2).expect_one_paragraph(&["cannot write the table tables/", "-o"]);
    assert_eq!(written("rank-1"), Some(before));
    // Nothing of the failure lies about.
    for table in fs::read_dir(scratch.file("tables")).expect("readable") {
        let folder = table.expect("readable").path().join("trace=rank-1");
        let names = fs::read_dir(folder).expect("readable");
        let names: Vec<_> = names.map(|entry| entry.expect("readable").file_name()).collect();
        assert_eq!(names, ["part-0.parquet"]);
    }
}
