//! What the repository brings for build servers, run by its steps as they are written: the action of
//! GitHub, the job for GitLab, the hook of pre-commit.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::command::{Ended, Scratch, streamsan};
use crate::programs;
use crate::python_package::repository;
use crate::tools::{PRE_COMMIT, YAML, command, with};

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(YAML, "build_servers::github_action", github_action));
    trials.push(with(YAML, "build_servers::github_action_installs", github_action_installs));
    trials.push(with(YAML, "build_servers::github_action_is_described", described));
    trials.push(with(YAML, "build_servers::gitlab_job", gitlab_job));
    trials.push(with(PRE_COMMIT, "build_servers::pre_commit_hook", pre_commit_hook));
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn printed(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

fn succeed(scratch: &Scratch, command: &mut Command) -> String {
    let ended = scratch.finish(command);
    assert!(ended.status.success(), "{command:?}: {}\n{}", printed(&ended), ended.stderr);
    printed(&ended)
}

/// An archive as `.ci/release` makes it, in a folder as the server has it; the archive and its sum.
fn release(scratch: &Scratch, server: &str) -> (PathBuf, String) {
    let folder = scratch.file(server).join(format!("owner/streamsan/releases/download/v{VERSION}"));
    let name = format!("streamsan-{VERSION}-x86_64-unknown-linux-gnu");
    fs::create_dir_all(folder.join(&name)).expect("there is room");
    fs::copy(streamsan(), folder.join(&name).join("streamsan")).expect("there is room");
    let archive = format!("{name}.tar.gz");
    let mut tar = command(scratch, &folder, "tar");
    succeed(scratch, tar.args(["-czf", &archive, &name]));
    let sums = succeed(scratch, command(scratch, &folder, "sha256sum").arg(&archive));
    fs::write(folder.join("SHA256SUMS"), &sums).expect("there is room");
    let sum = sums.split_whitespace().next().expect("a sum").to_owned();
    (folder.join(archive), sum)
}

/// What came out of the action, and all that its steps said.
fn action(scratch: &Scratch, server: &str, inputs: &Value) -> (Value, String) {
    let (workspace, temporary) = (scratch.file("workspace"), scratch.file("temporary"));
    if temporary.exists() {
        fs::remove_dir_all(&temporary).expect("it is ours");
    }
    for folder in [&workspace, &temporary] {
        fs::create_dir_all(folder).expect("there is room");
    }
    let situation = json!({
        "inputs": inputs,
        "github": {
            "server_url": format!("file://{}", scratch.file(server).display()),
            "action_repository": "owner/streamsan",
        },
        "workspace": workspace,
        "temporary": temporary,
    });
    let file = scratch.file("situation.json");
    fs::write(&file, situation.to_string()).expect("there is room");
    let mut steps = command(scratch, scratch.path(), "python3");
    steps.arg(repository("tests/runners/steps/github.py"));
    let ended = scratch.finish(steps.arg(repository("action.yml")).arg(file));
    ended.expect_code(0);
    (serde_json::from_slice(&ended.stdout).expect("JSON"), ended.stderr)
}

fn codes(told: &Value) -> Vec<Option<i64>> {
    let steps = told["steps"].as_array().expect("a list");
    steps.iter().map(|step| step["code"].as_i64()).collect()
}

fn program(name: &str, variant: &str) -> String {
    format!("{} {variant}", programs::rust(name).display())
}

/// The whole way: the archive, a run that races, the reports; then one that does not.
fn github_action() {
    let scratch = Scratch::new();
    let (archive, sum) = release(&scratch, "server");
    let inputs = |variant: &str, more: Value| {
        let mut inputs = json!({
            "run": format!("echo 'two lines'\n{}", program("array_boxes", variant)),
            "archive": archive,
            "sha256": sum,
            "sim": "true",
        });
        for (name, value) in more.as_object().expect("inputs") {
            inputs[name] = value.clone();
        }
        inputs
    };
    let (told, said) = action(&scratch, "server", &inputs("racy", json!({})));
    assert_eq!(codes(&told), [Some(0), Some(66), None], "{said}");
    let outputs = &told["outputs"];
    assert_eq!([&outputs["exit-code"], &outputs["verdict"]], ["66", "RACY"], "{told:#}");
    assert_eq!(outputs["findings"], "1");
    assert!(said.contains("two lines\n"), "{said}");
    assert!(said.contains("\n::error ") && said.contains("title=missing-wait%3A"), "{said}");
    let summary = told["summary"].as_str().expect("a text");
    assert!(summary.starts_with("### streamsan: RACY\n") && summary.contains("| **fails** |"));
    // What is kept is there, and what it is said to be.
    let kept = &told["steps"][2]["with"];
    assert_eq!(kept["name"], "streamsan");
    let files: Vec<&str> = kept["path"].as_str().expect("a text").lines().collect();
    assert_eq!(files.len(), 4);
    assert!(files.iter().all(|file| Path::new(file).is_file()), "{files:?}");
    for name in ["sarif", "html", "json", "trace"] {
        let file = outputs[name].as_str().expect("a path");
        assert!(files.contains(&file), "{file}: {files:?}");
    }
    let sarif = fs::read_to_string(files[0]).expect("readable");
    let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(1));

    let (told, said) = action(&scratch, "server", &inputs("clean", json!({})));
    assert_eq!(codes(&told), [Some(0), Some(0), None], "{said}");
    assert_eq!([&told["outputs"]["verdict"], &told["outputs"]["findings"]], ["CLEAN", "0"]);

    // Options reach the command, one a line, blanks and all; the folder is the user's.
    fs::create_dir_all(scratch.file("workspace/a folder")).expect("there is room");
    let accepted = "race[*]: * & * reason=\"known\"\n";
    fs::write(scratch.file("workspace/a folder/my list"), accepted).expect("there is room");
    let more = json!({
        "working-directory": "a folder",
        "options": "--suppressions=my list\n\n--stacks=off\n",
        "artifact": "",
    });
    let (told, said) = action(&scratch, "server", &inputs("racy", more));
    assert_eq!(codes(&told), [Some(0), Some(0), None], "{said}");
    assert!(told["steps"][2]["with"].is_null(), "nothing is kept");
    assert!(scratch.file("workspace/a folder/streamsan.html").is_file());

    // A script ends at its first failure, and no CUDA is no success.
    let failing = json!({ "run": "exit 3\ntouch too-far" });
    let (told, _) = action(&scratch, "server", &inputs("racy", failing));
    assert_eq!(codes(&told)[1], Some(3));
    assert!(!scratch.file("workspace/too-far").exists());
    let (told, _) = action(&scratch, "server", &inputs("racy", json!({ "run": "true" })));
    assert_eq!(codes(&told)[1], Some(4));
    assert_eq!(told["outputs"]["verdict"], "NO CUDA");
    // Where the command itself refuses, nothing is told as a verdict.
    let refused = json!({ "options": "--no-such-option" });
    let (told, said) = action(&scratch, "server", &inputs("racy", refused));
    assert_eq!(codes(&told)[1], Some(125), "{said}");
    assert_eq!(told["outputs"]["verdict"], "");
}

/// A download is held against the sums of its release, or the one that the user names.
fn github_action_installs() {
    let scratch = Scratch::new();
    let (archive, sum) = release(&scratch, "server");
    let install = |inputs: Value| {
        let mut inputs = inputs;
        inputs["run"] = json!(program("array_boxes", "clean"));
        inputs["sim"] = json!("true");
        action(&scratch, "server", &inputs)
    };
    let good = [Some(0), Some(0), None];
    let (told, said) = install(json!({ "version": VERSION }));
    assert_eq!(codes(&told), good, "{said}");
    assert!(said.contains(&format!("streamsan {VERSION}\n")), "{said}");
    let (told, _) = install(json!({ "version": VERSION, "sha256": sum }));
    assert_eq!(codes(&told), good);

    let other_sum = "0".repeat(64);
    for inputs in [
        json!({ "version": VERSION, "sha256": other_sum }),
        json!({ "archive": archive, "sha256": other_sum }),
    ] {
        let (told, said) = install(inputs);
        assert_eq!(codes(&told), [Some(1), None, None], "{said}");
        assert!(said.contains("::error title=streamsan::The archive has another sum"), "{said}");
        assert!(!scratch.file("temporary/streamsan/command").exists());
    }
    let (told, _) = install(json!({ "version": "999.0.0" }));
    assert!(codes(&told)[0].is_some_and(|code| code != 0), "{told:#}");
    let (told, said) = install(json!({}));
    assert_eq!(codes(&told), [Some(1), None, None], "{said}");
    assert!(said.contains("The command is not in PATH"), "{said}");

    // A file that was changed on its way.
    let mut file = fs::OpenOptions::new().append(true).open(&archive).expect("it is ours");
    file.write_all(b"changed").expect("there is room");
    let (told, said) = install(json!({ "version": VERSION }));
    assert_eq!(codes(&told), [Some(1), None, None], "{said}");
}

/// The action and the job follow the schemas of their servers, other actions are named by their
/// hashes, and every input and output stands in the documentation.
fn described() {
    let scratch = Scratch::new();
    let check = |schema: &str, file: &Path, more: &[&str]| {
        let mut check = command(&scratch, scratch.path(), "check-jsonschema");
        succeed(&scratch, check.args(["--builtin-schema", schema]).args(more).arg(file));
    };
    check("vendor.github-actions", &repository("action.yml"), &[]);
    let text = |path: &str| fs::read_to_string(repository(path)).expect("readable");
    for line in text("action.yml").lines().filter(|line| line.trim_start().starts_with("uses:")) {
        let (_, rest) = line.split_once('@').expect("an action of somebody else");
        let hash = rest.split(' ').next().expect("a first word");
        let is_hash = hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_hash, "{line}");
    }
    let page = text("docs/ci.md");
    let (_, github) = page.split_once("## GitHub Actions").expect("a section");
    let (github, gitlab) = github.split_once("## GitLab").expect("a section");
    let (gitlab, _) = gitlab.split_once("\n## ").expect("another section");
    // The names that stand two blanks in, below a word that stands at the margin.
    let names = |file: &str, above: &str, indent: usize| -> Vec<String> {
        let all = text(file);
        let (_, list) = all.split_once(above).expect("the list");
        let of_list = list
            .lines()
            .skip(1)
            .take_while(|line| line.is_empty() || line.starts_with(&" ".repeat(indent)));
        let names = of_list.filter_map(|line| line.get(indent..)?.strip_suffix(':'));
        names.filter(|name| !name.starts_with(' ')).map(str::to_owned).collect()
    };
    let inputs = names("action.yml", "\ninputs:", 2);
    let outputs = names("action.yml", "\noutputs:", 2);
    assert!(inputs.len() > 10 && outputs.len() > 6, "{inputs:?} {outputs:?}");
    for name in inputs.iter().chain(&outputs) {
        assert!(github.contains(&format!("| `{name}` |")), "{name} is missing in docs/ci.md");
    }
    let inputs = names("docs/gitlab.yml", "\n  inputs:", 4);
    assert!(inputs.len() > 8, "{inputs:?}");
    for name in inputs {
        assert!(gitlab.contains(&format!("| `{name}` |")), "{name} is missing in docs/ci.md");
    }
}

fn gitlab_job() {
    let scratch = Scratch::new();
    let (archive, sum) = release(&scratch, "server");
    let folder = scratch.file("job");
    fs::create_dir(&folder).expect("there is room");
    fs::copy(&archive, folder.join("streamsan.tar.gz")).expect("there is room");
    let run = |inputs: &Value| {
        let file = scratch.file("inputs.json");
        fs::write(&file, inputs.to_string()).expect("there is room");
        let mut job = command(&scratch, &folder, "python3");
        job.arg(repository("tests/runners/steps/gitlab.py"));
        job.arg(repository("docs/gitlab.yml")).arg(file).arg(&folder);
        scratch.finish(&mut job)
    };
    let inputs = |variant: &str, sum: &str| {
        json!({
            "run": format!("echo $(( 40 + 2 )) lines\n{}", program("array_boxes", variant)),
            "job": "races: on the GPU",
            "archive": "streamsan.tar.gz",
            "sha256": sum,
            "options": "--stacks=off\n--max-findings=0",
            "sim": "true",
        })
    };
    let ended = run(&inputs("racy", &sum));
    ended.expect_code(0);
    let told: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(
        (&told["name"], &told["code"]),
        (&json!("races: on the GPU"), &json!(66)),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("42 lines\n"), "{}", ended.stderr);
    // Every artifact that is named is there.
    let artifacts = &told["artifacts"];
    let reports = artifacts["reports"].as_object().expect("reports").values();
    let paths = artifacts["paths"].as_array().expect("paths").iter();
    for file in reports.chain(paths) {
        assert!(folder.join(file.as_str().expect("a name")).is_file(), "{file} is missing");
    }
    let issues = fs::read_to_string(folder.join("streamsan-quality.json")).expect("readable");
    let issues: Value = serde_json::from_str(&issues).expect("JSON");
    assert_eq!(issues[0]["check_name"], "missing-wait", "{issues:#}");
    // What GitLab reads once the inputs are filled in.
    let mut check = command(&scratch, &folder, "check-jsonschema");
    check.args([
        "--builtin-schema",
        "vendor.gitlab-ci",
        "--data-transform",
        "gitlab-ci",
        "job.yml",
    ]);
    succeed(&scratch, &mut check);

    let ended = run(&inputs("clean", &sum));
    let told: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(told["code"], 0, "{}", ended.stderr);
    let ended = run(&inputs("clean", &"0".repeat(64)));
    let told: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!(told["code"], 1, "{}", ended.stderr);
    assert!(!ended.stderr.contains("verdict"), "{}", ended.stderr);
    let refused = run(&json!({ "run": "true", "sim": "perhaps" }));
    refused.expect_code(2);
}

/// The hook from a repository of its own, in a project whose traces are right and then are not.
fn pre_commit_hook() {
    let scratch = Scratch::new();
    let git = |folder: &Path, words: &[&str]| {
        let mut git = command(&scratch, folder, "git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(words);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        succeed(&scratch, &mut git)
    };
    let (hooks, project) = (scratch.file("hooks"), scratch.file("project"));
    for folder in [&hooks, &project] {
        fs::create_dir(folder).expect("there is room");
        git(folder, &["init", "-q"]);
    }
    let manifest = hooks.join(".pre-commit-hooks.yaml");
    fs::copy(repository(".pre-commit-hooks.yaml"), manifest).expect("there is room");
    git(&hooks, &["add", "."]);
    git(&hooks, &["commit", "-q", "-m", "Hooks"]);
    let revision = git(&hooks, &["rev-parse", "HEAD"]);
    let config = format!(
        "repos:\n- repo: {}\n  rev: {}\n  hooks: [{{id: streamsan-traces}}]\n",
        hooks.display(),
        revision.trim()
    );
    fs::write(project.join(".pre-commit-config.yaml"), config).expect("there is room");
    let racy = "memset s1 A\nmemset s2 A  #~ race WAW 1\n";
    fs::write(project.join("two.trace"), racy).expect("there is room");
    fs::write(project.join("notes.txt"), "no trace\n").expect("there is room");
    git(&project, &["add", "."]);
    let hook = |code: i32| {
        let mut hook = command(&scratch, &project, "pre-commit");
        let own = streamsan().parent().expect("it is in a folder").to_owned();
        let path = std::env::join_paths(
            [own].into_iter().chain(std::env::split_paths(&crate::tools::path())),
        );
        hook.env("PATH", path.expect("no colon in the paths"));
        hook.env("PRE_COMMIT_HOME", scratch.file("pre-commit")).env("HOME", scratch.path());
        let ended = scratch.finish(hook.args(["run", "--all-files", "--verbose"]));
        assert_eq!(ended.status.code(), Some(code), "{}\n{}", printed(&ended), ended.stderr);
        printed(&ended)
    };
    let said = hook(0);
    assert!(said.contains("Passed") && said.contains("1 trace agrees"), "{said}");
    fs::write(project.join("two.trace"), "memset s1 A\nmemset s2 A\n").expect("there is room");
    git(&project, &["add", "."]);
    let said = hook(1);
    assert!(said.contains("Failed") && said.contains("two.trace:"), "{said}");
}
