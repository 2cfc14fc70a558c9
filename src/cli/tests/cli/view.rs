//! `streamsan view` in a real terminal: tmux presses keys and reads the screen.

use std::path::{Path, PathBuf};
use std::process::Command;
use streamsan_testing::terminal::Terminal;

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/recorded").join(name)
}

/// Runs the viewer in a shell that says afterwards how it was left.
fn start(name: &str, environment: &str, arguments: &str) -> Terminal {
    let program = env!("CARGO_BIN_EXE_streamsan");
    let script =
        format!("{environment} '{program}' view {arguments}; echo left with $?; stty -a; cat");
    Terminal::start(name, (80, 24), Command::new("tmux"), &script)
}

/// Presses Escape and waits until what it ends is gone. A key that is pressed before may come in
/// one piece with it, and then the two are another key.
#[track_caller]
fn escape(terminal: &Terminal, ends: &str) {
    terminal.shows(ends);
    terminal.keys(&["Escape"]);
    terminal.until(&format!("a screen without {ends:?}"), |screen| !screen.contains(ends));
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

#[test]
fn keys_are_pressed_and_screens_are_read() {
    let utf8 = "LC_ALL=C.UTF-8";
    let trace = quoted(&recorded("pytorch.db"));
    let terminal = start("keys", utf8, &trace);
    terminal.shows_all(&["679 operations", "axis: issue order"]);
    terminal.keys(&["?"]);
    escape(&terminal, "Keys of streamsan view");
    terminal.shows("679 operations");
    terminal.keys(&["/", "m", "e", "m", "c", "p", "y", "Enter"]);
    terminal.shows("cuMemcpy");
    terminal.keys(&["x"]);
    terminal.shows("axis: host issue time");
    terminal.keys(&["4"]);
    terminal.shows("in the driver");
    terminal.keys(&["r"]);
    terminal.shows("no races");
    terminal.keys(&[":", "l", "o", "g"]);
    escape(&terminal, ":log");
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.until("a wider screen", |screen| {
        screen.lines().next().is_some_and(|line| line.contains("axis:") && line.len() > 100)
    });
    terminal.keys(&["q"]);
    // The shell's own screen is back.
    terminal.until("the shell's own screen", |screen| {
        screen.contains("left with 0") && !screen.contains("679 operations")
    });
}

#[test]
fn race_of_the_demo_is_one_key_away() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let trace = folder.path().join("demo.db");
    let program = env!("CARGO_BIN_EXE_streamsan");
    let demo = Command::new(program).args(["demo", "-o"]).arg(&trace).output().expect("it runs");
    assert!(trace.exists(), "{}", String::from_utf8_lossy(&demo.stderr));
    let terminal = start("demo", "LC_ALL=C.UTF-8", &quoted(&trace));
    terminal.shows("1 race ");
    terminal.keys(&["r"]);
    terminal.shows_all(&["race 1/", "certain"]);
    terminal.keys(&["5", "z"]);
    terminal.shows("no happens-before path");
    terminal.keys(&["C-c"]);
    terminal.shows("left with 0");
}

/// The editor has the terminal for itself: no alternate screen, lines are lines; afterwards the viewer
/// is there again, and takes keys.
#[test]
fn editor_is_opened_at_the_line_and_the_viewer_comes_back() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    // The file is looked for by the end of its path where the program ran elsewhere.
    let source = folder.path().join("tests/gpu/programs/torch_unordered.py");
    std::fs::create_dir_all(source.parent().expect("a folder")).expect("made");
    std::fs::write(&source, "import torch\n").expect("written");
    let editor = folder.path().join("editor");
    let script = "#!/bin/sh\nstty -a | grep -o ' icanon'\necho \"edits $*\"\nread line\necho \"read $line\"\nread line\n";
    std::fs::write(&editor, script).expect("written");
    let trace = quoted(&recorded("racy/torch_unordered.db"));
    let environment = format!(
        "cd {}; LC_ALL=C.UTF-8 EDITOR=false VISUAL='sh ./editor -x'",
        quoted(folder.path())
    );
    let terminal = start("editor", &environment, &trace);
    terminal.shows("1 race ");
    terminal.keys(&["r"]);
    terminal.shows("race 1/");
    terminal.keys(&["e"]);
    let screen = terminal.shows_all(&["edits -x +", "torch_unordered.py"]);
    assert!(screen.contains(" icanon"), "{screen}");
    terminal.is_a_shells();
    terminal.keys(&["o", "n", "e", "Enter"]);
    terminal.shows("read one");
    terminal.keys(&["Enter"]);
    terminal.shows_all(&["axis: issue order", "edited "]);
    terminal.keys(&["?"]);
    escape(&terminal, "Keys of streamsan view");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
    terminal.is_a_shells();
}

#[test]
fn editor_that_fails_is_told() {
    let trace = quoted(&recorded("racy/torch_unordered.db"));
    let terminal = start("no-editor", "cd /; LC_ALL=C.UTF-8 VISUAL= EDITOR=", &trace);
    terminal.shows("1 race ");
    terminal.keys(&["r"]);
    terminal.shows("race 1/");
    terminal.keys(&["e"]);
    terminal.shows("neither VISUAL nor EDITOR names an editor");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn text_trace_is_looked_at_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let trace = folder.path().join("racy.trace");
    let racy = "launch s1 produce w:A\nlaunch s2 consume r:A\nlaunch s1 other w:B\n";
    std::fs::write(&trace, racy).expect("written");
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    let environment = format!("LC_ALL=C.UTF-8 TMPDIR={}", quoted(&temporary));
    let terminal = start("text", &environment, &quoted(&trace));
    terminal.shows_all(&["racy.trace", "3 operations", "1 race "]);
    terminal.keys(&["r"]);
    terminal.shows_all(&["race 1/", "certain"]);
    terminal.keys(&["5", "z"]);
    terminal.shows("no happens-before path");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
    let left = std::fs::read_dir(&temporary).expect("readable").count();
    assert_eq!(left, 0, "the stored form is removed");
}

/// Ranks of one machine are aligned by its clock, and told by what their launcher called them; a text
/// trace stands among them.
#[test]
fn ranks_of_a_job_stand_in_one_view() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_streamsan");
    for (rank, variant) in [("0", None), ("1", Some("--clean"))] {
        let mut demo = Command::new(program);
        demo.args(["demo", "-o"]).arg(folder.path().join(format!("rank{rank}.db")));
        demo.args(variant).env("RANK", rank).env("LOCAL_RANK", rank);
        assert!(demo.output().expect("it runs").status.code().is_some());
    }
    let racy = "launch s1 produce w:A\nlaunch s2 consume r:A\n";
    std::fs::write(folder.path().join("racy.trace"), racy).expect("written");
    let files =
        ["rank0.db", "rank1.db", "racy.trace"].map(|name| quoted(&folder.path().join(name)));
    let terminal = start("ranks", "LC_ALL=C.UTF-8", &files.join(" "));
    terminal.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.shows_all(&[
        "3 traces",
        "axis: host issue time",
        "rank0.db  rank 0",
        "rank1.db  rank 1",
    ]);
    terminal.shows_all(&["aligned by the monotonic clock of their machine", "no host times"]);
    terminal.keys(&["r"]);
    terminal.shows("in rank0.db");
    terminal.keys(&["t", "}"]);
    terminal.shows("shifted by +");
    terminal.keys(&["r"]);
    terminal.shows("in racy.trace");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
    // A directory stands for its traces; an offset moves one of them.
    let arguments = format!("--offset 2=+3s {}", quoted(folder.path()));
    let terminal = start("directory", "LC_ALL=C.UTF-8", &arguments);
    terminal.shows_all(&["2 traces", "rank0.db  rank 0"]);
    terminal.keys(&["4", "T"]);
    terminal.shows("This trace begins at +");
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

/// The exit code is that of `diff`.
#[test]
fn both_sides_of_a_diff_stand_beside_each_other() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let [clean, racy] = ["clean.trace", "racy.trace"].map(|name| folder.path().join(name));
    let text = "launch s1 produce w:A\nlaunch s2 consume r:A\n";
    std::fs::write(&racy, text).expect("written");
    std::fs::write(&clean, text.replace("r:A", "r:B")).expect("written");
    let program = env!("CARGO_BIN_EXE_streamsan");
    let script = format!(
        "LC_ALL=C.UTF-8 '{program}' diff --view {} {}; echo left with $?; cat",
        quoted(&clean),
        quoted(&racy)
    );
    let terminal = Terminal::start("diff", (120, 40), Command::new("tmux"), &script);
    terminal.shows_all(&[" A  clean.trace", " B  racy.trace", "1 new, 0 gone, 0 same"]);
    terminal.keys(&["r"]);
    terminal.shows_all(&["1/1 new race", "new in B: no such race here"]);
    terminal.keys(&["5"]);
    terminal.shows("no happens-before path");
    terminal.keys(&["t", "q"]);
    terminal.shows("left with 1");
}

#[test]
fn race_known_in_a_library_does_not_count() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let trace = folder.path().join("library.trace");
    let whole =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/stacks/libraries.trace");
    std::fs::copy(whole, &trace).expect("copied");
    let terminal = start("upstream", "LC_ALL=C.UTF-8", &quoted(&trace));
    terminal.shows_all(&["library.trace", "1 race, 1 known upstream"]);
    terminal.keys(&["q"]);
    terminal.shows("left with 0");
}

#[test]
fn plain_terminals_get_ascii_without_colour() {
    let plain = "LC_ALL=C NO_COLOR=1";
    let trace = quoted(&recorded("jax.db"));
    let terminal = start("plain", plain, &trace);
    terminal.shows("1,585 operations");
    terminal.keys(&["j", "w", "w", "f"]);
    let output = terminal.tmux(&["capture-pane", "-p", "-e"]);
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(screen.is_ascii(), "{screen}");
    for colour in ["[38;", "[48;", "[31m", "[32m"] {
        assert!(!screen.contains(colour), "{colour} in {screen}");
    }
}

#[test]
fn trace_that_cannot_be_read_is_told_before_anything_is_drawn() {
    let terminal = start("none", "", "/nonexistent.db");
    terminal.shows_all(&["left with 5", "cannot open the trace"]);
}

/// The settings of the viewer are set back: the shell's screen, its cursor, the mouse, and lines
/// typed are lines.
#[track_caller]
fn is_restored(terminal: &Terminal, code: u8) {
    terminal.shows(&format!("left with {code}"));
    let screen = terminal.screen();
    assert!(screen.contains("a panic was asked for"), "{screen}");
    // The last word of the modes.
    let screen = terminal.until("the modes", |screen| screen.contains("extproc"));
    assert!(screen.contains(" icanon") && screen.contains(" echo "), "{screen}");
    terminal.is_a_shells();
}

#[test]
fn panic_gives_the_terminal_back() {
    let trace = quoted(&recorded("jax.db"));
    let asked = "LC_ALL=C.UTF-8 STREAMSAN_VIEWER_PANIC=2";
    let terminal = start("panic", asked, &trace);
    is_restored(&terminal, 101);
}

/// The thread that reads the trace is another one than the one that has the terminal.
#[test]
fn panic_of_the_reading_thread_gives_the_terminal_back() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let trace = folder.path().join("demo.db");
    let program = env!("CARGO_BIN_EXE_streamsan");
    let demo = Command::new(program).args(["demo", "-o"]).arg(&trace).output().expect("it runs");
    assert!(trace.exists(), "{}", String::from_utf8_lossy(&demo.stderr));
    let asked = "LC_ALL=C.UTF-8 STREAMSAN_VIEWER_PANIC=reader";
    let terminal = start("panic-reader", asked, &quoted(&trace));
    terminal.shows("1 race");
    terminal.keys(&["r", "5"]);
    is_restored(&terminal, 2);
}
