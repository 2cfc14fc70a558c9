//! The pages on the classes of findings (`docs/findings`): each class has one, each has all of its
//! parts, and what it shows is so. The text traces are analysed, the C++ is compiled by NVIDIA's
//! compiler, the Python is parsed, the suppression is held against the finding. (The Rust is compiled
//! as documentation tests of this package.) `BLESS=1` writes the list of pages anew.

use crate::documents::{must_be, read, root};
use crate::{analyse, check, host_model, report_of};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};
use streamsan_model::{RaceClass, Severity};
use streamsan_report::{Disposition, Gate, Suppressions};
use streamsan_text::{compare, parse};

const FOLDER: &str = "docs/findings";
const LIST: &str = "docs/findings/README.md";
/// The headings of every page.
const PARTS: [&str; 9] = [
    "CUDA C++",
    "PyTorch",
    "cudarc",
    "Text traces",
    "Why it happens",
    "Severity and confidence",
    "How to fix it",
    "How to accept it",
    "The rule of CUDA",
];

pub(crate) fn add(trials: &mut Vec<Trial>) {
    for &class in RaceClass::ALL {
        let name = class.description();
        trials.push(Trial::test(format!("pages::traces_of_{name}"), move || traces(class)));
        trials.push(Trial::test(format!("pages::parts_of_{name}"), move || parts(class)));
    }
    trials.push(check("pages::each_page_is_of_a_class", each_page_is_of_a_class));
    trials.push(check("pages::list_is_current", list_is_current));
    trials.push(check("pages::rust_is_tested", rust_is_tested));
    trials.push(with("nvcc", "pages::cpp_compiles", cpp_compiles));
    trials.push(with("python3", "pages::python_parses", python_parses));
}

/// A trial that needs a tool; ignored where the machine has none and no folder of tools is given.
fn with(tool: &'static str, name: &str, test: fn(PathBuf) -> Result<(), Failed>) -> Trial {
    const VARIABLE: &str = "STREAMSAN_TEST_TOOLS";
    let folders = [VARIABLE, "PATH"].map(|name| env::var_os(name).unwrap_or_default());
    let folders = folders.iter().flat_map(env::split_paths).filter(|f| f.is_absolute());
    let file = folders.map(|folder| folder.join(tool)).find(|file| file.is_file());
    let is_missing = file.is_none() && env::var_os(VARIABLE).is_none();
    let test = move || match file {
        Some(file) => test(file),
        None => Err(format!("no {tool} in {VARIABLE} or PATH").into()),
    };
    Trial::test(name, test).with_ignored_flag(is_missing)
}

fn page(class: RaceClass) -> String {
    read(&format!("{FOLDER}/{}.md", class.description()))
}

/// The code of a page in a language.
fn fences<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("\n```{language}\n");
    let pieces = page.split(&*begin).skip(1);
    pieces.map(|piece| &piece[..piece.find("```").expect("the code ends")]).collect()
}

/// The text under a heading.
fn part<'a>(page: &'a str, heading: &str) -> &'a str {
    let begin = format!("\n## {heading}\n\n");
    let (_, behind) = page.split_once(&*begin).unwrap_or_else(|| panic!("no part {heading}"));
    behind.split("\n## ").next().unwrap_or_default().trim()
}

/// The severity of what the bad trace of a page shows, and that it shows nothing else.
fn severity(class: RaceClass, page: &str) -> Result<Severity, Failed> {
    let [text] = fences(page, "trace-bad")[..] else { return Err("one bad trace".into()) };
    let trace = parse(text)?;
    let analysis = analyse(&trace, host_model(&trace));
    let mismatches = compare(&trace, &analysis.findings, &analysis.lints);
    if !mismatches.is_empty() {
        let lines: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        return Err(lines.join("\n").into());
    }
    // A lint that explains a race is not told apart from it, as in every report.
    let report = report_of(format!("{}.trace", class.description()), &trace, &analysis);
    let findings = report.groups().iter().map(|g| (g.finding.class, g.finding.severity));
    let lints = report.lints().iter().map(|group| (group.lint.class, Severity::Lint));
    let all: Vec<(RaceClass, Severity)> = findings.chain(lints).collect();
    let [(found, severity)] = all[..] else { return Err(format!("found: {all:?}").into()) };
    if found != class {
        return Err(format!("the bad trace shows {}", found.description()).into());
    }
    accepted(class, page, text)?;
    Ok(severity)
}

/// The suppression of a page accepts what its bad trace shows.
fn accepted(class: RaceClass, page: &str, text: &str) -> Result<(), Failed> {
    let [suppression] = fences(part(page, "How to accept it"), "text")[..] else {
        return Err("one suppression".into());
    };
    let trace = parse(text)?;
    let analysis = analyse(&trace, host_model(&trace));
    let name = format!("{}.trace", class.description());
    let mut report = report_of(name, &trace, &analysis);
    report.hold_against(&Gate {
        suppressions: Some(Suppressions::parse(suppression)?),
        baseline: None,
        today: "2026-01-01".parse()?,
    });
    let of_findings = report.groups().iter().map(|group| &group.disposition);
    let of_lints = report.lints().iter().map(|group| &group.disposition);
    let mut all = of_findings.chain(of_lints);
    if all.all(|disposition| matches!(disposition, Disposition::Suppressed { .. })) {
        return Ok(());
    }
    Err("the suppression does not accept what the bad trace shows".into())
}

fn traces(class: RaceClass) -> Result<(), Failed> {
    let page = page(class);
    let severity = severity(class, &page)?;
    let said = part(&page, "Severity and confidence");
    let first = said.split(". ").next().unwrap_or_default();
    if !first.contains(&format!("`{}`", severity.description())) {
        return Err(format!("a {} by its trace, but: {first}", severity.description()).into());
    }
    let [good] = fences(&page, "trace-good")[..] else { return Err("one good trace".into()) };
    let trace = parse(good)?;
    if !trace.expectations.is_empty() {
        return Err("the good trace expects something".into());
    }
    let analysis = analyse(&trace, host_model(&trace));
    if analysis.findings.is_empty() && analysis.lints.is_empty() {
        return Ok(());
    }
    Err(format!("the good trace shows {:?} {:?}", analysis.findings, analysis.lints).into())
}

fn parts(class: RaceClass) -> Result<(), Failed> {
    let page = page(class);
    let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    if headings != PARTS {
        return Err(format!("the headings are {headings:?}").into());
    }
    if !page.starts_with(&format!("# {}\n\n", class.description())) {
        return Err("the title is another one".into());
    }
    for heading in PARTS {
        if part(&page, heading).len() < 40 {
            return Err(format!("nothing is said under {heading}").into());
        }
    }
    // Where the class cannot occur, a sentence says why.
    for (heading, language) in [("CUDA C++", "cpp"), ("PyTorch", "python"), ("cudarc", "rust")] {
        let count = fences(part(&page, heading), language).len();
        if !(count == 2 || count == 0 && language != "cpp") {
            return Err(format!("{count} examples under {heading}").into());
        }
    }
    for word in ["certain", "likely", "possible", "latent"] {
        if !part(&page, "Severity and confidence").contains(word) {
            return Err(format!("nothing is said of {word}").into());
        }
    }
    if !part(&page, "The rule of CUDA").contains("(") {
        return Err("no source of the rule".into());
    }
    // Terminals and other tools show the pages too; their readers may have no other characters.
    match page.is_ascii() {
        true => Ok(()),
        false => Err("the page is not ASCII".into()),
    }
}

fn each_page_is_of_a_class() {
    let files = fs::read_dir(root().join(FOLDER)).expect("a folder of pages");
    let names = files.map(|file| file.expect("a readable folder").file_name());
    let mut names: BTreeSet<String> =
        names.map(|name| name.to_string_lossy().into_owned()).collect();
    // Written by another test, with `BLESS=1`.
    names.remove("README.md");
    let classes = RaceClass::ALL.iter().map(|class| format!("{}.md", class.description()));
    assert_eq!(names, classes.collect());
}

fn list_is_current() {
    let mut list = "# Classes of findings\n\n\
        <!-- Generated by `BLESS=1 cargo test -p streamsan-tests --test corpus pages` from the pages. -->\n\n\
        Each class has a page: what the class means, the mistake and its repair in CUDA C++, PyTorch, \
        cudarc and as text traces, why it happens, how to mend it, and the rule of CUDA that it rests \
        on. `streamsan explain CLASS` prints the page. The examples are tested. `produce` and \
        `consume` in the C++ are kernels that write and read their argument.\n\n\
        The severity is that of the example; the page says when it is another one.\n\n\
        | class | severity | meaning |\n|---|---|---|\n"
        .to_owned();
    for &class in RaceClass::ALL {
        let (name, page) = (class.description(), page(class));
        let severity = severity(class, &page).expect("a trace that shows the class");
        let summary = page.split("\n\n").nth(1).expect("a paragraph under the title");
        let end = summary.find(". ").expect("several sentences");
        let severity = severity.description();
        list += &format!("| [`{name}`]({name}.md) | {severity} | {} |\n", &summary[..=end]);
    }
    must_be(LIST, &list);
}

/// The documentation tests of this package have every page with Rust.
fn rust_is_tested() {
    let list = read("tests/programs/support/findings.rs");
    for &class in RaceClass::ALL {
        let is_listed = list.contains(&format!("\"{}\"", class.description()));
        let has_rust = !fences(&page(class), "rust").is_empty();
        assert_eq!(is_listed, has_rust, "{class:?} in tests/programs/support/findings.rs");
    }
}

/// The declarations that the examples take for granted.
const AROUND_CPP: &str = "#include <cuda.h>\n#include <cuda_runtime.h>\n#include <vector>\n\
    __global__ void produce(float *out) { *out = 1.0f; }\n\
    __global__ void consume(const float *in) { (void)*in; }\n\
    struct StreamPool { cudaStream_t next(); };\n";

/// All examples in one file, so that the compiler begins once. Without code for a device: the names
/// and types of the host's calls are what matters.
fn cpp_compiles(nvcc: PathBuf) -> Result<(), Failed> {
    let mut source = AROUND_CPP.to_owned();
    for &class in RaceClass::ALL {
        let page = page(class);
        for (number, code) in fences(&page, "cpp").into_iter().enumerate() {
            let name = class.description();
            let space = format!("{}_{number}", name.replace('-', "_"));
            source += &format!("namespace {space} {{\n#line 1 \"{name} {number}\"\n{code}}}\n");
        }
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("examples.cu");
    fs::write(&file, source)?;
    let mut command = Command::new(nvcc);
    command.args(["-ptx", "-std=c++17", "-arch=compute_75", "-Werror", "all-warnings", "-o"]);
    succeeds(command.arg(folder.path().join("examples.ptx")).arg(file), "")
}

fn python_parses(python: PathBuf) -> Result<(), Failed> {
    for &class in RaceClass::ALL {
        let page = page(class);
        for code in fences(&page, "python") {
            let mut command = Command::new(&python);
            command.args(["-c", "import ast, sys; ast.parse(sys.stdin.read())"]);
            succeeds(&mut command, code)?;
        }
    }
    Ok(())
}

fn succeeds(command: &mut Command, input: &str) -> Result<(), Failed> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().expect("a pipe").write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = [output.stdout, output.stderr].concat();
            Err(format!("{input}\n{}", String::from_utf8_lossy(&said)).into())
        }
    }
}
