//! Programs compiled here print the addresses of their stack; the symboliser finds their sources.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use streamsan_model::SourceFrame;
use streamsan_symbols::Symbolizer;

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");

/// A directory with a program in it.
struct Built {
    directory: tempfile::TempDir,
    program: PathBuf,
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn source(name: &str) -> String {
    format!("{SOURCES}/{name}")
}

/// The helper that prints the stack, compiled without debug information.
fn helper(directory: &Path) -> PathBuf {
    let object = directory.join("stack.o");
    run(Command::new("cc")
        .args(["-c", "-O1", "-g0", "-fPIC", "-fno-optimize-sibling-calls"])
        .arg("-fno-omit-frame-pointer")
        .arg(source("stack.c"))
        .arg("-o")
        .arg(&object));
    object
}

fn built(compiler: &str, name: &str, options: &[&str]) -> Built {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let object = helper(directory.path());
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-fno-optimize-sibling-calls", "-Wl,--build-id=sha1"]);
    command.args(options).arg(source(name)).arg(object).arg("-o").arg(&program).arg("-ldl");
    run(&mut command);
    Built { directory, program }
}

fn built_c(options: &[&str]) -> Built {
    built("cc", "plain.c", options)
}

/// The frames of the program's stack that lie in the program itself.
fn addresses(program: &Path) -> Vec<u64> {
    let said = run(&mut Command::new(program));
    let frames = said.lines().filter_map(|line| line.rsplit_once(' '));
    let own = frames.filter(|(image, _)| Path::new(image) == program);
    let own: Vec<u64> = own.map(|(_, at)| u64::from_str_radix(at, 16).unwrap()).collect();
    assert!(own.len() >= 3, "{said}");
    own
}

/// The stack of a program in words: `function file:line`, `+` behind inlined ones.
fn stack_of(symbolizer: &mut Symbolizer, program: &Path) -> Vec<String> {
    let frames = addresses(program);
    frames.iter().flat_map(|&at| symbolizer.source(program, None, at)).map(|f| words(&f)).collect()
}

fn words(frame: &SourceFrame) -> String {
    let mut text = frame.function.as_deref().unwrap_or("?").to_owned();
    if let Some(file) = frame.file.as_deref() {
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        text += &format!(" {name}:{}", frame.line.unwrap_or(0));
    }
    if frame.inlined {
        text.push_str(" +");
    }
    text
}

fn expect(found: &[String], expected: &[&str]) {
    assert!(found.len() >= expected.len() && found[..expected.len()] == *expected, "{found:#?}");
}

const PLAIN: [&str; 5] = [
    "tell_stack",
    "innermost plain.c:7 +",
    "middle plain.c:13 +",
    "outer plain.c:19",
    "main plain.c:25",
];

/// Without DWARF the symbols still name the functions that have code of their own.
const NAMES_ONLY: [&str; 3] = ["tell_stack", "outer", "main"];

#[test]
fn inlined_functions_are_frames_of_their_own() {
    for options in [
        &[][..],
        &["-no-pie"],
        &["-gdwarf-4"],
        &["-gdwarf-5"],
        &["-gz=zlib"],
        &["-ffunction-sections", "-Wl,--gc-sections"],
    ] {
        let built = built_c(options);
        let found = stack_of(&mut Symbolizer::new(), &built.program);
        expect(&found, &PLAIN);
    }
}

#[test]
fn paths_are_whole_whatever_the_compiler_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let object = helper(directory.path());
    let mut command = Command::new("cc");
    command.current_dir(SOURCES).args(["-g", "-O1", "plain.c"]).arg(object);
    run(command.arg("-o").arg(&program).arg("-ldl"));
    let mut symbolizer = Symbolizer::new();
    let frames = addresses(&program);
    let frame = frames.iter().flat_map(|&at| symbolizer.source(&program, None, at)).nth(1);
    let file = frame.unwrap().file.unwrap();
    let same = Path::new(&*file).canonicalize().unwrap() == Path::new(&source("plain.c"));
    assert!(same || Path::new(&*file) == Path::new(&source("plain.c")), "{file}");
}

#[test]
fn split_dwarf_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let helper = helper(directory.path());
    let object = directory.path().join("plain.o");
    let compiled = ["-g", "-gsplit-dwarf", "-O1", "-fno-optimize-sibling-calls", "-c"];
    run(Command::new("cc").args(compiled).arg(source("plain.c")).arg("-o").arg(&object));
    run(Command::new("cc").args([&object, &helper]).arg("-o").arg(&program).arg("-ldl"));
    expect(&stack_of(&mut Symbolizer::new(), &program), &PLAIN);
}

#[test]
fn without_debug_information_symbols_name_functions() {
    let built = built_c(&["-g0"]);
    expect(&stack_of(&mut Symbolizer::new(), &built.program), &NAMES_ONLY);
    // Only the functions that other images may call are left, and a name is not taken from a
    // neighbour.
    let exported = built_c(&["-g0", "-s", "-rdynamic"]);
    let found = stack_of(&mut Symbolizer::new(), &exported.program);
    expect(&found, &["tell_stack", "main"]);
}

/// Moves the debug information of a program into a file of its own.
fn split(built: &Built, debug: &Path) {
    std::fs::create_dir_all(debug.parent().unwrap()).unwrap();
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&built.program).arg(debug));
    run(Command::new("strip").arg("--strip-all").arg(&built.program));
}

fn build_id(program: &Path) -> String {
    let said = run(Command::new("readelf").arg("-n").arg(program));
    let line = said.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    line.expect("a program with a build id").to_owned()
}

fn raw(id: &str) -> Vec<u8> {
    (0..id.len() / 2).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect()
}

#[test]
fn debug_files_are_found_by_build_id() {
    let built = built_c(&[]);
    let id = build_id(&built.program);
    let root = built.directory.path().join("debug");
    split(&built, &root.join(format!(".build-id/{}/{}.debug", &id[..2], &id[2..])));
    let elsewhere = built.directory.path().join("nowhere");
    assert!(
        stack_of(&mut Symbolizer::with_debug_directories([elsewhere]), &built.program).is_empty()
    );
    let mut symbolizer = Symbolizer::with_debug_directories([root]);
    expect(&stack_of(&mut symbolizer, &built.program), &PLAIN);

    // The image may be gone at the time of the question.
    let frames = addresses(&built.program);
    std::fs::remove_file(&built.program).unwrap();
    let raw = raw(&id);
    let found = symbolizer.source(&built.program, Some(&raw), frames[1]);
    assert_eq!(words(&found[0]), PLAIN[1]);
    assert!(Symbolizer::new().source(&built.program, Some(&raw), frames[1]).is_empty());
}

#[test]
fn debug_files_are_found_by_link() {
    for place in ["program.debug", ".debug/program.debug"] {
        for options in [&[][..], &["-Wl,--build-id=none"]] {
            let built = built_c(options);
            let debug = built.directory.path().join(place);
            split(&built, &debug);
            run(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&debug).arg(&built.program));
            expect(&stack_of(&mut Symbolizer::new(), &built.program), &PLAIN);
        }
    }
    // Below a directory of debug files, by the path of the image.
    let built = built_c(&["-Wl,--build-id=none"]);
    let directory = built.directory.path().canonicalize().unwrap();
    let root = directory.join("debug");
    let debug = root.join(directory.strip_prefix("/").unwrap()).join("program.debug");
    split(&built, &debug);
    run(Command::new("objcopy").arg("--add-gnu-debuglink").arg(&debug).arg(&built.program));
    expect(&stack_of(&mut Symbolizer::with_debug_directories([root]), &built.program), &PLAIN);
    // A debug file with another checksum belongs to another program.
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    let root = directory.join("debug");
    let found = stack_of(&mut Symbolizer::with_debug_directories([root]), &built.program);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn an_image_with_another_build_id_is_not_used() {
    let built = built_c(&[]);
    let frames = addresses(&built.program);
    let mut symbolizer = Symbolizer::new();
    let right = raw(&build_id(&built.program));
    let mut wrong = right.clone();
    wrong[0] ^= 1;
    assert_eq!(symbolizer.source(&built.program, Some(&right), frames[1]).len(), 3);
    assert!(symbolizer.source(&built.program, Some(&wrong), frames[1]).is_empty());
    assert_eq!(symbolizer.source(&built.program, None, frames[1]).len(), 3);
}

#[test]
fn names_of_c_plus_plus_are_demangled() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("no C++ compiler: not tested");
        return;
    }
    let built = built("c++", "names.cc", &[]);
    let found = stack_of(&mut Symbolizer::new(), &built.program);
    expect(&found, &["tell_stack", "shop::Counter<long>::add names.cc:10", "main names.cc:19"]);
    run(Command::new("strip").arg("--strip-debug").arg(&built.program));
    let found = stack_of(&mut Symbolizer::new(), &built.program);
    expect(&found, &["tell_stack", "shop::Counter<long>::add", "main"]);
}

#[test]
fn names_of_rust_are_demangled() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let object = helper(directory.path());
    for mangling in ["legacy", "v0"] {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command.args(["-g", "--edition", "2024", &source("names.rs")]);
        if mangling == "v0" {
            command.args(["-C", "symbol-mangling-version=v0"]);
        }
        command.arg(format!("-Clink-arg={}", object.display())).arg("-o").arg(&program);
        run(&mut command);
        let found = stack_of(&mut Symbolizer::new(), &program);
        assert!(
            found[1].contains("shop::Counter<") && found[1].ends_with("add names.rs:10"),
            "{found:#?}"
        );
        assert!(found.iter().any(|frame| frame == "names::main names.rs:22"), "{found:#?}");
        assert!(found.iter().all(|frame| !frame.contains("17h")), "{found:#?}");
    }
}

#[test]
fn what_is_no_image_gives_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let built = built_c(&[]);
    let whole = std::fs::read(&built.program).unwrap();
    let frames = addresses(&built.program);
    let mut symbolizer = Symbolizer::new();
    for path in [
        file("empty", b""),
        file("text", b"#!/bin/sh\n"),
        file("head", &whole[..64]),
        directory.path().to_owned(),
        directory.path().join("missing"),
        PathBuf::from("/dev/zero"),
        PathBuf::from(""),
        PathBuf::from("[vdso]"),
        PathBuf::from("program"),
    ] {
        assert!(symbolizer.source(&path, None, frames[1]).is_empty(), "{}", path.display());
        assert!(symbolizer.source(&path, Some(&[1, 2, 3]), 0).is_empty(), "{}", path.display());
    }
    assert!(symbolizer.source(&built.program, None, 0).is_empty());
    assert!(symbolizer.source(&built.program, None, u64::MAX).is_empty());
    // Damage at any place: no panic, whatever the answer is.
    for step in 0..400 {
        let mut broken = whole.clone();
        let at = step * 7919 % broken.len();
        broken[at..].iter_mut().step_by(97).take(50).for_each(|byte| *byte ^= 0x5a);
        let path = file("broken", &broken);
        let mut symbolizer = Symbolizer::new();
        for &frame in &frames {
            symbolizer.source(&path, None, frame);
        }
        let path = file("cut", &whole[..at]);
        Symbolizer::new().source(&path, None, frames[1]);
    }
}

/// The symboliser's full answer for a program's stack, as the program runs now.
fn said(symbolizer: &mut Symbolizer, program: &Path, frames: &[u64]) -> Vec<String> {
    frames.iter().flat_map(|&at| symbolizer.source(program, None, at)).map(|f| words(&f)).collect()
}

/// A mapping of a file that was truncated ends the process with a signal when it is read.
#[test]
fn a_file_that_is_truncated_later_is_still_known() {
    let built = built_c(&[]);
    let frames = addresses(&built.program);
    let mut symbolizer = Symbolizer::new();
    // Opened, with no question for the other functions yet.
    assert!(!symbolizer.source(&built.program, None, frames[2]).is_empty());
    std::fs::OpenOptions::new().write(true).truncate(true).open(&built.program).unwrap();
    let found = said(&mut symbolizer, &built.program, &frames);
    // The helper has no DWARF; its name would have been read now.
    expect(&found, &PLAIN[1..]);
    assert!(said(&mut Symbolizer::new(), &built.program, &frames).is_empty());
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_does_no_harm() {
    let built = built_c(&[]);
    let frames = addresses(&built.program);
    let right = said(&mut Symbolizer::new(), &built.program, &frames);
    let whole = std::fs::read(&built.program).unwrap();
    let copy = built.directory.path().join("copy");
    std::fs::write(&copy, &whole).unwrap();
    let (mut complete, mut less) = (0, 0);
    // How often it was read. The file is cut and whole for a moment by turns, and then whole until it
    // was read from beginning to end, however long that takes.
    let read = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (copy, whole, read) = (&copy, &whole, &read);
        scope.spawn(move || {
            let file = std::fs::OpenOptions::new().write(true).open(copy).unwrap();
            let length = whole.len() as u64;
            let goes_on = || stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty);
            let moment = || std::thread::sleep(std::time::Duration::from_micros(200));
            while goes_on() {
                for part in 0..8 {
                    file.set_len(length * part / 8).unwrap();
                    moment();
                    std::os::unix::fs::FileExt::write_all_at(&file, whole, 0).unwrap();
                    moment();
                }
                let before = read.load(Ordering::SeqCst);
                while read.load(Ordering::SeqCst) < before + 2 && goes_on() {
                    moment();
                }
            }
        });
        for attempt in 0..100_000 {
            match said(&mut Symbolizer::new(), copy, &frames) == right {
                true => complete += 1,
                false => less += 1,
            }
            read.fetch_add(1, Ordering::SeqCst);
            if attempt > 1000 && complete > 0 && less > 0 {
                break;
            }
        }
        drop(stop);
    });
    // Both results occur, or the file was not truncated while it was read.
    assert!(complete > 0 && less > 0, "{complete} {less}");
}

#[test]
fn dwarf_that_is_too_large_is_left_out_and_told() {
    let built = built_c(&[]);
    let frames = addresses(&built.program);
    for (room, expected, large) in [(500, &NAMES_ONLY[..], 1), (1 << 20, &PLAIN[..], 0)] {
        let mut symbolizer = Symbolizer::new().reading_at_most(room);
        expect(&said(&mut symbolizer, &built.program, &frames), expected);
        let told = symbolizer.too_large();
        assert_eq!(told, vec![built.program.as_path(); large]);
    }
    // A program without DWARF.
    let built = built_c(&["-g0"]);
    let mut symbolizer = Symbolizer::new().reading_at_most(0);
    expect(&stack_of(&mut symbolizer, &built.program), &NAMES_ONLY);
    assert!(symbolizer.too_large().is_empty());
}

/// Whether a tool is installed; a test that needs a missing tool says so and ends. With
/// `STREAMSAN_TEST_TOOLS` set, a missing tool is a failure.
fn has(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    assert!(found || std::env::var_os("STREAMSAN_TEST_TOOLS").is_none(), "no {tool}");
    if !found {
        eprintln!("no {tool}: not tested");
    }
    found
}

/// Strips a program as distributions do: functions that no other image may call are packed into a
/// section of it.
fn strip_with_packed_symbols(built: &Built) {
    let file = |name: &str| built.directory.path().join(name);
    let (keep, mini) = (file("keep"), file("mini"));
    std::fs::write(&keep, "outer\n").unwrap();
    run(Command::new("objcopy").arg("--only-keep-debug").arg(&built.program).arg(&mini));
    let mut only = Command::new("objcopy");
    only.args(["--strip-all", "--remove-section=.comment"]);
    run(only.arg(format!("--keep-symbols={}", keep.display())).arg(&mini));
    run(Command::new("strip").arg("--strip-all").arg(&built.program));
    run(Command::new("xz").arg(&mini));
    let packed = format!(".gnu_debugdata={}", file("mini.xz").display());
    run(Command::new("objcopy").arg("--add-section").arg(packed).arg(&built.program));
}

#[test]
fn packed_symbols_name_functions_of_stripped_images() {
    if !has("xz") {
        return;
    }
    let built = built_c(&["-rdynamic"]);
    strip_with_packed_symbols(&built);
    // The others are functions that other images may call.
    expect(&stack_of(&mut Symbolizer::new(), &built.program), &NAMES_ONLY);
    run(Command::new("objcopy").arg("--remove-section=.gnu_debugdata").arg(&built.program));
    let found = stack_of(&mut Symbolizer::new(), &built.program);
    expect(&found, &["tell_stack", "main"]);
}

#[test]
fn packed_symbols_that_are_broken_give_no_answer() {
    if !has("xz") {
        return;
    }
    let built = built_c(&["-rdynamic"]);
    strip_with_packed_symbols(&built);
    let frames = addresses(&built.program);
    let whole = std::fs::read(&built.program).unwrap();
    let magic = [0xfd, b'7', b'z', b'X', b'Z', 0];
    let at = whole.windows(6).position(|bytes| bytes == magic).unwrap();
    let path = built.directory.path().join("broken");
    std::fs::copy(&built.program, &path).unwrap();
    run(Command::new("objcopy").arg("--remove-section=.gnu_debugdata").arg(&path));
    let exported = said(&mut Symbolizer::new(), &path, &frames);
    let mut unnamed = 0;
    for offset in (0..200).step_by(3) {
        let mut broken = whole.clone();
        broken[at + offset] ^= 0x55;
        std::fs::write(&path, &broken).unwrap();
        let found = said(&mut Symbolizer::new(), &path, &frames);
        let others: Vec<_> = found.iter().filter(|name| *name != "outer").collect();
        assert_eq!(others, exported.iter().collect::<Vec<_>>());
        unnamed += u32::from(found == exported);
    }
    assert!(unnamed > 50, "{unnamed}");
}
