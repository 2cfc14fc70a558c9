//! The traces of real runs stay readable, and say what their provenance says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::check;
use libtest_mimic::Trial;
use streamsan_analysis::analyse;
use streamsan_model::{Action, TraceItem};
use streamsan_store::Reader;

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(check(
        "recorded::recorded_traces_say_what_their_provenance_says",
        recorded_traces_say_what_their_provenance_says,
    ));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces/recorded")
}

/// The facts about a trace in the table of the folder's README.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    launches: usize,
    copies: usize,
    streams: usize,
    records_and_waits: usize,
    not_understood: usize,
}

/// Rows `| `FILE` | program | launches | copies | streams | records and waits | not understood |`.
fn said() -> BTreeMap<String, Said> {
    let text = fs::read_to_string(folder().join("README.md")).expect("the README of the folder");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let number = |cell: usize| cells[cell].parse().expect("a number");
        let said = Said {
            launches: number(3),
            copies: number(4),
            streams: number(5),
            records_and_waits: number(6),
            not_understood: number(7),
        };
        (cells[1].trim_matches('`').to_owned(), said)
    })
    .collect()
}

fn found(path: &Path) -> Said {
    let reader = Reader::open(path).expect("the trace opens");
    let items: Vec<TraceItem> =
        reader.items().collect::<Result<_, _>>().expect("the trace is whole");
    let count = |wanted: &dyn Fn(&Action) -> bool| {
        let action = |item: &TraceItem| match item {
            TraceItem::Operation(op) if op.status.is_success() => wanted(&op.action),
            _ => false,
        };
        items.iter().filter(|&item| action(item)).count()
    };
    let analysis = analyse(&items);
    assert!(analysis.findings.is_empty(), "{}: {:#?}", path.display(), analysis.findings);
    Said {
        launches: count(&|action| matches!(action, Action::Launch { .. })),
        copies: count(&|action| matches!(action, Action::Copy(_))),
        streams: analysis.entities.streams().count(),
        records_and_waits: count(&|action| {
            matches!(action, Action::EventRecord { .. } | Action::StreamWaitEvent { .. })
        }),
        not_understood: reader.incomplete_reasons().expect("the reasons").len(),
    }
}

fn recorded_traces_say_what_their_provenance_says() {
    let traces: BTreeMap<String, Said> = fs::read_dir(folder())
        .expect("the folder of recorded traces")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .map(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, found(&path))
        })
        .collect();
    assert!(!traces.is_empty(), "no recorded trace");
    assert_eq!(traces, said());
}
