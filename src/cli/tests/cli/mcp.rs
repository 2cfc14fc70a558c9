//! `streamsan mcp`: a client's session, as written.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A client that asks one question at a time.
struct Client {
    server: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
    /// The schemas of the answers, by the tools.
    promised: BTreeMap<String, Value>,
}

impl Client {
    fn new(directory: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command.arg("mcp").current_dir(directory).env("NO_COLOR", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = command.spawn().expect("the command starts");
        let questions = server.stdin.take().expect("piped");
        let answers = BufReader::new(server.stdout.take().expect("piped"));
        let mut client = Self { server, questions, answers, asked: 0, promised: BTreeMap::new() };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "a test", "version": "1" },
        });
        let hello = client.ask("initialize", &hello);
        assert_eq!(hello["serverInfo"]["name"], "streamsan", "{hello:#}");
        let words = hello["instructions"].as_str().expect("instructions");
        assert!(words.contains("list_findings"), "{words}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let tools = client.ask("tools/list", &json!({}));
        for tool in tools["tools"].as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name").to_owned();
            client.promised.insert(name, tool["outputSchema"].clone());
        }
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.questions, "{message}").expect("the server reads");
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.asked += 1;
        let (id, version) = (self.asked, "2.0");
        self.send(&json!({ "jsonrpc": version, "id": id, "method": method, "params": parameters }));
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the server answers");
        let answer: Value = serde_json::from_str(&line).expect("a JSON object a line");
        assert_eq!(answer["id"], id, "{answer:#}");
        answer["result"].clone()
    }

    /// The answer of a tool, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (Value, bool) {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let is_error = answer["isError"].as_bool().unwrap_or_default();
        (answer, is_error)
    }

    /// The structured answer of a tool.
    fn value(&mut self, tool: &str, arguments: &Value) -> Value {
        let (answer, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{answer:#}");
        let value = answer["structuredContent"].clone();
        let promised = &self.promised[tool];
        assert_eq!(promised["type"], "object", "{tool} promises {promised:#}");
        let validator = jsonschema::validator_for(promised).expect("a schema");
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{tool}: {errors:#?}\n{value:#}");
        // For clients that know text only.
        let text = answer["content"][0]["text"].as_str().expect("text");
        assert_eq!(serde_json::from_str::<Value>(text).ok().as_ref(), Some(&value), "{answer:#}");
        value
    }

    fn text(&mut self, tool: &str, arguments: &Value) -> String {
        let (answer, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{answer:#}");
        answer["content"][0]["text"].as_str().expect("text").to_owned()
    }

    fn refusal(&mut self, tool: &str, arguments: &Value) -> String {
        let (answer, is_error) = self.call(tool, arguments);
        assert!(is_error, "{answer:#}");
        answer["content"][0]["text"].as_str().expect("text").to_owned()
    }

    /// The client goes; the server ends by itself, and has printed nothing else.
    fn end(self) {
        let Self { server, questions, mut answers, .. } = self;
        drop(questions);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut answers, &mut rest).expect("readable");
        let ended = server.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!((ended.status.code(), rest.as_str(), said.as_str()), (Some(0), "", ""));
    }
}

/// A race of two kernels, with the place of the first in a source beside it.
fn workplace() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = fs::canonicalize(directory.path()).expect("it is there");
    let source = here.join("program.cc");
    let racy = format!(
        "stack fill {program}+4096:fill_block@{source}:3\nalloc block 4096\n\
         launch s1 fill w:block stack=fill\nlaunch s2 sum r:block\n",
        program = here.join("program").display(),
        source = source.display(),
    );
    fs::write(here.join("racy.trace"), &racy).expect("written");
    let mended = racy.replace("launch s2", "record filled s1\nwait s2 filled\nlaunch s2");
    fs::write(here.join("clean.trace"), mended).expect("written");
    fs::write(&source, "int main()\n{\n\tfill_block();\n\tsum();\n}\n").expect("written");
    directory
}

#[test]
fn a_session() {
    let here = workplace();
    let mut client = Client::new(here.path());
    let tools = client.ask("tools/list", &json!({}));
    let names = tools["tools"].as_array().expect("a list").iter();
    let mut names: Vec<&str> = names.filter_map(|tool| tool["name"].as_str()).collect();
    names.sort_unstable();
    let expected =
        ["compare_traces", "explain_finding", "list_findings", "source_context", "verify_edge"];
    assert_eq!(names, expected);
    for tool in tools["tools"].as_array().expect("a list") {
        assert!(tool["description"].as_str().is_some_and(|text| !text.is_empty()), "{tool:#}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool:#}");
    }

    let listed = client.value("list_findings", &json!({ "trace": "racy.trace" }));
    assert_eq!(listed["verdict"], "RACY", "{listed:#}");
    let finding = &listed["findings"][0];
    assert_eq!(finding["class"], "missing-wait", "{listed:#}");
    assert_eq!(finding["title"], "read-after-write race on 4.0 KiB of `block`", "{listed:#}");
    let of_finding = json!({ "trace": "racy.trace", "id": finding["id"] });

    let story = client.text("explain_finding", &of_finding);
    for part in ["error[missing-wait]", "no happens-before path", "verified: with it this finding"]
    {
        assert!(story.contains(part), "{part}: {story}");
    }

    let mut around = of_finding.clone();
    around["lines"] = json!(1);
    let source = client.value("source_context", &around);
    let place = &source["places"][0];
    assert_eq!((&place["call"], &place["line"]), (&json!("first access"), &json!(3)), "{source:#}");
    assert_eq!(place["function"], "fill_block", "{source:#}");
    let lines = json!([
        { "line": 2, "text": "{" },
        { "line": 3, "text": "\tfill_block();" },
        { "line": 4, "text": "\tsum();" },
    ]);
    assert_eq!(place["source"], lines, "{source:#}");

    let verified = client.value("verify_edge", &of_finding);
    assert_eq!(verified["verified"], true, "{verified:#}");
    assert_eq!((&verified["removes"], &verified["adds"]), (&json!(1), &json!(0)), "{verified:#}");

    let two = json!({ "before": "racy.trace", "after": "clean.trace" });
    let compared = client.value("compare_traces", &two);
    assert_eq!(compared["gone"][0]["id"], finding["id"], "{compared:#}");
    assert_eq!((&compared["new"], &compared["kept"]), (&json!([]), &json!([])), "{compared:#}");

    // A refusal is said to the client's model, and the session goes on.
    let clean = json!({ "trace": "clean.trace", "id": finding["id"] });
    assert!(client.refusal("explain_finding", &clean).contains("has no finding"));
    let elsewhere = json!({ "trace": env!("CARGO_BIN_EXE_streamsan") });
    assert!(client.refusal("list_findings", &elsewhere).contains("--root"));
    let level = json!({ "trace": "racy.trace", "fail_on": "never" });
    assert!(client.refusal("list_findings", &level).contains("certain, likely, possible"));
    assert!(client.refusal("list_findings", &json!({})).contains("trace"));
    let listed = client.value("list_findings", &json!({ "trace": "clean.trace" }));
    assert_eq!(listed["verdict"], "CLEAN", "{listed:#}");
    client.end();
}

#[test]
fn sources_outside_of_the_roots_are_not_told() {
    let here = workplace();
    let inner = here.path().join("inner");
    fs::create_dir(&inner).expect("made");
    fs::rename(here.path().join("racy.trace"), inner.join("racy.trace")).expect("moved");
    let mut client = Client::new(&inner);
    let listed = client.value("list_findings", &json!({ "trace": "racy.trace" }));
    let of_finding = json!({ "trace": "racy.trace", "id": listed["findings"][0]["id"] });
    let source = client.value("source_context", &of_finding);
    assert_eq!(source["places"][0]["source"], Value::Null, "{source:#}");
    client.end();
}
