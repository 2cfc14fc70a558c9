//! A trace in which every name is hostile: what it says to a terminal, to a log and to a build.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use streamsan_model::{
    Entity, Frame, FramePlace, HostAccesses, IncompleteReason, KernelGap, Operation, SourceFrame,
    TraceItem,
};
use streamsan_store::{
    Coverage, EntryPoint, KernelCount, MeasuredCount, MeasuredKind, Meta, Treatment, Writer,
};

/// Races, a wait for nothing, an allocation with a name, stacks.
const PROGRAM: &str = "stack one /proj/app+64:work@/proj/work.cc:7\n\
    stack two py:step@/proj/train.py:2 /proj/app+128\n\
    stream work\nstream other nonblocking\nevent done\npageable host 4096\nalloc data 4096 stack=one\n\
    wait other done\nlaunch work produce w:data stack=one\nrecord done work\n\
    launch other consume rw:data stack=two\ncopy_sync dst:data src:host stack=one\nsync_ctx\n";

/// Clears the screen, rings, ends a string, forges lines, and turns the rest of the line round.
fn hostile(name: &str) -> String {
    format!(
        "::error::{name}\nverdict: CLEAN - no races\r\n::error file=x::y\u{1b}[2J\u{7}\0\t\u{7f}\
         \u{9b}31m\u{202e}\u{2066}\u{2028}\u{200b}##[error]z %0A::set-output\\x1b \"]]>--> `|<b>"
    )
}

fn item(item: TraceItem) -> TraceItem {
    let entity = match item {
        TraceItem::Entity(entity) => entity,
        TraceItem::Operation(operation) => {
            return TraceItem::Operation(Operation {
                api: hostile(&operation.api).into(),
                ..operation
            });
        }
        returned => return returned,
    };
    TraceItem::Entity(match entity {
        Entity::Process(mut process) => {
            process.executable = hostile("executable");
            process.arguments = vec![hostile("argument"); 2];
            Entity::Process(process)
        }
        Entity::Stream(mut stream) => {
            stream.name = Some(hostile("stream"));
            Entity::Stream(stream)
        }
        Entity::Event(mut event) => {
            event.name = Some(hostile("event"));
            Entity::Event(event)
        }
        Entity::Allocation(mut allocation) => {
            allocation.name = Some(hostile("allocation"));
            allocation.api = hostile("api");
            Entity::Allocation(allocation)
        }
        Entity::Kernel(mut kernel) => {
            kernel.name = hostile(&kernel.name);
            Entity::Kernel(kernel)
        }
        Entity::Frame(frame) => {
            let source = SourceFrame {
                function: Some(hostile("function").into()),
                file: Some(format!("/proj/{}", hostile("file")).into()),
                line: Some(3),
                inlined: false,
            };
            let place = match &frame.place {
                FramePlace::Native { build_id, offset, .. } => FramePlace::Native {
                    image: format!("/proj/{}", hostile("image")).into(),
                    build_id: build_id.clone(),
                    offset: *offset,
                },
                FramePlace::Python => FramePlace::Python,
            };
            Entity::Frame(Arc::new(Frame { place, source: vec![source], ..(*frame).clone() }))
        }
        other => other,
    })
}

/// Writes the trace. `incomplete`: something was not seen.
fn write(path: &Path, incomplete: bool) {
    let meta = Meta {
        tool_version: hostile("version"),
        started_at: Default::default(),
        command: vec![hostile("command"); 2],
        host: hostile("host"),
        driver: hostile("driver"),
        extra: Default::default(),
    };
    let mut writer = Writer::create(path, &meta).expect("a trace");
    let program = streamsan_text::parse(PROGRAM).expect("a text trace");
    program.items.into_iter().for_each(|it| writer.item(&item(it)).expect("an item"));
    let entry_points = Treatment::ALL.map(|treatment| {
        let name = hostile(treatment.description());
        EntryPoint { name, treatment, calls: 7 }
    });
    let understood = |entry: &EntryPoint| entry.treatment != Treatment::NotUnderstood;
    let kernels = KernelGap::ALL.map(|gap| KernelCount { gap, name: hostile("gap"), count: 1 });
    let measured = MeasuredKind::ALL.map(|kind| {
        let name = hostile("measured");
        MeasuredCount { kind, name, count: 1 }
    });
    let (api, kernel) = (hostile("reason"), hostile("parameters"));
    let reasons = vec![
        IncompleteReason::NotUnderstood { api, calls: 1 },
        IncompleteReason::UnknownKernelParameters { kernel: kernel.clone(), launches: 1 },
        IncompleteReason::PointersInMemory { kernel, launches: 1 },
        IncompleteReason::TraceNotWritten(hostile("why")),
    ];
    let coverage = Coverage {
        entry_points: entry_points.into_iter().filter(|e| incomplete || understood(e)).collect(),
        reasons: if incomplete { reasons } else { Vec::new() },
        kernels: kernels.into(),
        host_accesses: Some(HostAccesses {
            operations: 2,
            fenced: 1,
            not_fenced: vec![(hostile("why"), 1)],
            left_alone: vec![(hostile("whose"), 1)],
            ..HostAccesses::default()
        }),
        measured: measured.into(),
        ..Coverage::default()
    };
    writer.set_coverage(&coverage).expect("coverage");
    writer.finalize().expect("a whole trace");
}

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().expect("a directory"));
        write(&bench.file("whole.db"), false);
        write(&bench.file("part.db"), true);
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").env("XDG_CACHE_HOME", self.file("cache"));
        command.output().expect("the command runs")
    }
}

/// Characters that a terminal obeys, that turn a line round, and that nobody sees.
fn is_harmful(c: char) -> bool {
    c != '\n' && c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[track_caller]
fn expect_harmless(what: &[&str], text: &str, verdicts: usize) {
    let harmful: Vec<char> = text.chars().filter(|&c| is_harmful(c)).collect();
    assert!(harmful.is_empty(), "{what:?}: {harmful:?} in\n{text}");
    let forged = text.lines().filter(|line| line.starts_with("verdict: CLEAN"));
    assert_eq!(forged.count(), 0, "{what:?}:\n{text}");
    let told = text.lines().filter(|line| line.starts_with("verdict:")).count();
    assert_eq!(told, verdicts, "{what:?}:\n{text}");
    assert!(!text.contains("##[error]"), "{what:?}:\n{text}");
}

/// No line that GitHub takes for a command but those that are meant to be some.
#[track_caller]
fn expect_no_command(what: &[&str], text: &str) {
    let commands: Vec<&str> =
        text.lines().filter(|line| line.trim_start().starts_with("::")).collect();
    assert!(commands.is_empty(), "{what:?}: {commands:#?}");
}

#[test]
fn no_command_prints_what_a_terminal_obeys() {
    let bench = Bench::new();
    let mut printed = 0;
    for arguments in [
        &["check", "whole.db"][..],
        &["check", "part.db", "--list-library-lints", "--fail-on", "lint", "--verify"],
        &["check", "whole.db", "part.db"],
        &["explain", "whole.db"],
        &["explain", "whole.db", "1"],
        &["stats", "part.db"],
        &["advise", "whole.db"],
        &["advise", "part.db"],
        &["diff", "whole.db", "part.db", "--fail-on", "lint"],
        &["export", "part.db", "--format", "text"],
        &["export", "part.db", "--format", "junit"],
        &["export", "part.db", "--format", "github-summary"],
        &["export", "part.db", "--format", "html"],
        &["export", "part.db", "--format", "dot"],
        &["stats", "no\nverdict: CLEAN\u{1b}[2J.db"],
        &["check", "whole.db", "--suppressions", "::error::\u{202e}"],
        &["doctor", "::error::\u{1b}\nverdict: CLEAN"],
        &["kernels", "\u{7}::error::"],
        &["run", "--sim", "--", "./\u{7}\n::error::"],
    ] {
        let output = bench.run(arguments);
        let verdicts = match arguments {
            ["check", .., "::error::\u{202e}"] => 0,
            ["check", ..] | ["export", _, _, "text" | "junit" | "github-summary"] => 1,
            _ => 0,
        };
        let text = String::from_utf8(output.stdout).expect("output in UTF-8");
        expect_harmless(arguments, &text, verdicts);
        expect_no_command(arguments, &text);
        let said = String::from_utf8(output.stderr).expect("messages in UTF-8");
        expect_harmless(arguments, &said, 0);
        expect_no_command(arguments, &said);
        printed += usize::from(text.contains("\\nverdict: CLEAN"));
    }
    assert!(printed >= 10, "names are printed, and visible: {printed}");
}

#[test]
fn annotations_of_github_are_those_that_are_meant() {
    let bench = Bench::new();
    let arguments = ["export", "part.db", "--format", "github"];
    let text = String::from_utf8(bench.run(&arguments).stdout).expect("output in UTF-8");
    expect_harmless(&arguments, &text, 0);
    assert!(text.lines().count() > 3, "{text}");
    for line in text.lines() {
        let level = line.strip_prefix("::").and_then(|rest| rest.split_once(' '));
        let (level, rest) = level.expect("a command");
        assert!(["error", "warning", "notice"].contains(&level), "{line}");
        // Properties end at the first `::`: none of their values has one.
        let (properties, _) = rest.split_once("::").expect("a message");
        let names: Vec<&str> =
            properties.split(',').map(|pair| pair.split('=').next().unwrap_or("")).collect();
        assert!(names == ["title"] || names == ["file", "line", "title"], "{line}");
        assert!(!properties.contains("error::"), "{line}");
    }
}

#[test]
fn programs_get_the_true_names() {
    let bench = Bench::new();
    for (arguments, name) in [
        (&["export", "part.db", "--format", "json"][..], hostile("produce")),
        (&["check", "part.db", "--json"], hostile("produce")),
        (&["stats", "part.db", "--json"], hostile("produce")),
        (&["export", "part.db", "--format", "sarif"], String::new()),
        (&["diff", "whole.db", "part.db", "--json"], String::new()),
        (&["advise", "whole.db", "--json"], String::new()),
    ] {
        let output = bench.run(arguments);
        let text = String::from_utf8(output.stdout).expect("output in UTF-8");
        let harmful: Vec<char> = text.chars().filter(|&c| is_harmful(c)).collect();
        assert!(harmful.is_empty() && !text.contains("##["), "{arguments:?}: {harmful:?}");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert!(name.is_empty() || has(&document, &name), "{arguments:?}: {document:#}");
    }
}

fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(values) => values.iter().any(|value| has(value, text)),
        Value::Object(fields) => fields.values().any(|value| has(value, text)),
        _ => false,
    }
}

#[test]
fn bytes_of_paths_are_told_one_by_one() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let path = OsStr::from_bytes(b"no-\xff\x1b[2J\\x\n.trace");
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
    let output = command.arg("check").arg(path).current_dir(bench.0.path()).output();
    let said = String::from_utf8(output.expect("the command runs").stderr).expect("UTF-8");
    assert!(said.starts_with("streamsan: cannot read no-\\xff\\x1b[2J\\\\x\\n.trace: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// XML 1.0 has characters that no document may hold, however they are written.
#[test]
fn junit_is_xml() {
    let bench = Bench::new();
    let arguments = ["export", "part.db", "--format", "junit"];
    let text = String::from_utf8(bench.run(&arguments).stdout).expect("output in UTF-8");
    let is_legal = |c: char| matches!(c, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    assert!(text.chars().all(is_legal), "{text}");
    assert!(!text.contains("&#x1b;") && !text.contains("&#27;"), "{text}");
    assert!(text.contains("\\x1b[2J"), "{text}");
}

/// A suppression is read again: what it quotes is as the reader of suppressions wants it. The rest of
/// it is for people.
#[test]
fn comments_of_suppressions_are_harmless() {
    let bench = Bench::new();
    let arguments = ["suppress", "whole.db"];
    let text = String::from_utf8(bench.run(&arguments).stdout).expect("output in UTF-8");
    assert!(!text.chars().any(is_harmful), "{text}");
    let comments = text.lines().filter(|line| line.starts_with("# "));
    let names = comments.filter(|line| line.contains("\\nverdict: CLEAN - no races\\r"));
    assert!(names.count() >= 3, "{text}");
}

/// A report that is written beside what is printed is no other one.
#[test]
fn files_are_as_harmless() {
    let bench = Bench::new();
    for format in ["text", "github-summary", "dot"] {
        let report = format!("{format}=out");
        let arguments = ["check", "part.db", "--report", &report];
        bench.run(&arguments);
        let text = fs::read_to_string(bench.file("out")).expect("a report");
        expect_harmless(&arguments, &text, usize::from(format != "dot"));
        expect_no_command(&arguments, &text);
        fs::remove_file(bench.file("out")).expect("removed");
    }
}

#[test]
fn lines_of_sources_are_those_below_the_roots() {
    let bench = Bench::new();
    let [here, other] = ["here", "other"].map(|name| {
        let folder = bench.file(name);
        fs::create_dir(&folder).expect("a folder");
        fs::canonicalize(folder).expect("a path")
    });
    let place = other.join("a.cc");
    fs::write(&place, "one\nlaunch(produce); // \u{1b}[2J\u{202e}\n").expect("a source");
    let place = place.display();
    let trace = format!(
        "stack one /proj/app+64:work@{place}:2\nalloc data 4096\n\
         launch s1 produce w:data stack=one\nlaunch s2 consume r:data\n"
    );
    fs::write(here.join("in.trace"), trace).expect("a trace");
    let run = |of: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command.args([of, "in.trace"]).args(more).current_dir(&here).stdin(Stdio::null());
        let output = command.output().expect("the command runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("output in UTF-8"))
    };
    for (of, expected) in [("explain", 0), ("check", 1)] {
        let (code, text) = run(of, &[]);
        assert_eq!(code, Some(expected));
        assert!(text.contains("a.cc:2") && !text.contains("launch(produce)"), "{text}");
        let (code, text) = run(of, &["--source-root", ".", "--source-root", "../other"]);
        assert_eq!(code, Some(expected));
        assert!(text.contains(" launch(produce); // \\x1b[2J\\u{202e}\n"), "{text}");
        // The call is marked.
        assert!(text.contains("\n                  ^^^^^^^\n"), "{text}");
        assert_eq!(run(of, &["--source-root", "nowhere"]).0, Some(5));
        assert_eq!(run(of, &["--source-root", "in.trace"]).0, Some(2));
    }
}
