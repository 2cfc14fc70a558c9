//! Chromium without a window, asked over its DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>) through a pair of pipes: no port, no driver.
//!
//! Everything waits for an answer or an event, never for a time to pass; a browser that says nothing for
//! three minutes fails the test.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// How long a browser may say nothing.
const PATIENCE: Duration = Duration::from_secs(180);

/// How a page is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Width of the window in CSS pixels.
    pub width: u32,
    /// Whether the user prefers dark colours.
    pub dark: bool,
    /// Whether scripts may run.
    pub scripts: bool,
}

impl Look {
    /// A desk: wide, light, with scripts.
    pub const DESK: Self = Self { width: 1280, dark: false, scripts: true };
}

/// A browser that runs, with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Complaints and requests since the page was opened.
    seen: Vec<Value>,
    calls: u64,
    session: String,
    _profile: tempfile::TempDir,
}

/// The executable: of the folders of `STREAMSAN_TEST_TOOLS` and of `PATH`.
fn executable() -> Option<PathBuf> {
    let folders = ["STREAMSAN_TEST_TOOLS", "PATH"].map(std::env::var_os);
    let folders = folders.iter().flatten().flat_map(std::env::split_paths);
    let files: Vec<PathBuf> = folders
        .flat_map(|folder| {
            ["chromium", "chromium-browser", "google-chrome"].map(|n| folder.join(n))
        })
        .collect();
    files.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    ///
    /// There is none, or it does not start.
    pub fn start() -> Self {
        let program = executable().expect("Chromium in STREAMSAN_TEST_TOOLS or PATH");
        let profile = tempfile::tempdir().expect("a directory");
        // The protocol speaks on descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", "sh"])
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"])
            .args(["--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while output.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let value = serde_json::from_slice(&message).expect("JSON from the browser");
                message.clear();
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            seen: Vec::new(),
            calls: 0,
            session: String::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
        browser
    }

    /// Opens a file, and waits until it has loaded and its scripts have run.
    pub fn open(&mut self, file: &Path, look: Look) {
        self.open_address(&format!("file://{}", file.display()), look);
    }

    /// Opens an address of a file, with `#` and a part of it.
    ///
    /// # Panics
    ///
    /// The browser does not load it.
    pub fn open_address(&mut self, address: &str, look: Look) {
        // From elsewhere, so that an address that differs in its part only is loaded anew.
        self.navigate("about:blank");
        let size = json!({
            "width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if look.dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !look.scripts}));
        self.seen.clear();
        self.navigate(address);
    }

    fn navigate(&mut self, address: &str) {
        let answer = self.call("Page.navigate", json!({"url": address}));
        assert_eq!(answer.get("errorText"), None, "{address}");
        self.wait_for_load(&answer["loaderId"]);
    }

    /// The value of an expression in the page.
    ///
    /// # Panics
    ///
    /// The expression throws.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let what = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", what);
        assert_eq!(answer.get("exceptionDetails"), None, "{expression}");
        answer["result"]["value"].clone()
    }

    /// Waits until a condition holds in the page, looking at it once a frame.
    pub fn wait_until(&mut self, condition: &str) {
        self.evaluate(&format!(
            "new Promise((done) => {{
               const look = () => ({condition}) ? done() : requestAnimationFrame(look);
               look();
             }})"
        ));
    }

    /// Presses and lets go of the mouse's button over a place of the window, or turns its wheel.
    pub fn mouse(&mut self, kind: &str, (x, y): (f64, f64), more: Value) {
        let mut event = json!({"type": kind, "x": x, "y": y});
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        self.call("Input.dispatchMouseEvent", event);
    }

    /// The complaints of the console since the page was opened, and everything that was loaded beside
    /// the file itself.
    pub fn complaints(&mut self) -> Vec<String> {
        // Complaints from before the answer are here with it.
        self.evaluate("0");
        let complaint = |event: &Value| -> Option<String> {
            let of = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(of["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" => Some(of["args"].to_string()),
                "Log.entryAdded" => Some(of["entry"].to_string()),
                "Network.requestWillBeSent" if of["type"] != "Document" => {
                    Some(format!("loads {}", of["request"]["url"]))
                }
                _ => None,
            }
        };
        self.seen.iter().filter_map(complaint).collect()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let written = self.input.write_all(format!("{message}\0").as_bytes());
        written.expect("the browser listens");
        loop {
            let answer = self.next();
            if answer["id"] == id {
                assert_eq!(answer.get("error"), None, "{method}");
                return answer["result"].clone();
            }
            self.seen.push(answer);
        }
    }

    fn wait_for_load(&mut self, loader: &Value) {
        let is_it = |event: &Value| {
            let of = &event["params"];
            event["method"] == "Page.lifecycleEvent"
                && of["name"] == "load"
                && of["loaderId"] == *loader
        };
        if self.seen.iter().any(is_it) {
            return;
        }
        loop {
            let next = self.next();
            let is_loaded = is_it(&next);
            self.seen.push(next);
            if is_loaded {
                return;
            }
        }
    }

    fn next(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("the browser speaks")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own processes end with it.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
