//! The page in a browser: what stands in it after its script ran, and without the script; wide and
//! narrow, light and dark. They need Chromium: `cargo test -p streamsan -- --ignored html`.

mod timeline;

use serde_json::json;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use streamsan_testing::browser::{Browser, Look};

use crate::formats::{Bench, corpus};

/// Names that end a string, an attribute, a script and a comment, load something, and turn a line round.
const HOSTILE: &str = "</script><script>document.title='forged'</script><b>\"'><img src=x \
                       onerror=\"document.title='forged'\">--><!--\u{202e}]]>&lt;";

impl Bench {
    /// Makes a page of a trace.
    #[track_caller]
    fn page(&self, trace: &Path, more: &[&str]) -> PathBuf {
        let page = self.file("report.html");
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamsan"));
        command.args(["export", "--format", "html", "-o"]).arg(&page).arg(trace).args(more);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.file("cache"));
        let output = command.output().expect("the command runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        page
    }

    /// Makes a page of a text trace.
    #[track_caller]
    fn page_of(&self, text: &str, more: &[&str]) -> PathBuf {
        let trace = self.file("in.trace");
        fs::write(&trace, text).expect("a trace");
        self.page(&trace, more)
    }
}

/// Ways to look at a page.
fn looks() -> Vec<Look> {
    let mut looks = Vec::new();
    for width in [1280, 390] {
        for dark in [false, true] {
            for scripts in [true, false] {
                looks.push(Look { width, dark, scripts });
            }
        }
    }
    looks
}

/// Answers a list of all that is wrong with a page; it is empty however the page is looked at.
const FAULTS: &str = r#"(() => {
  const faults = [];
  const all = [...document.querySelectorAll("body *")];
  const ids = all.map((e) => e.id).filter(Boolean);
  if (new Set(ids).size !== ids.length) faults.push("an id stands twice");
  for (const e of all) {
    for (const name of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const id of (e.getAttribute(name) ?? "").split(" ").filter(Boolean)) {
        if (!document.getElementById(id)) faults.push(`${name} points to no ${id}`);
      }
    }
    if (e.matches("a[href]") && !document.getElementById(e.getAttribute("href").slice(1)))
      faults.push(`a link to nothing: ${e.getAttribute("href")}`);
    if (e.matches("input, select, button") && !(e.labels?.length || e.textContent.trim() || e.ariaLabel))
      faults.push(`no label: ${e.outerHTML}`);
    if (e.matches("svg:not(.shared)") && !(e.getAttribute("role") === "img" && e.querySelector("title")?.textContent))
      faults.push("a drawing without a title");
    if (e.matches("table") && !e.querySelector("th[scope=col]")) faults.push("a table without headers");
    if (e.matches("img, iframe, object, embed, link, [style]:not(canvas)")) faults.push(e.outerHTML);
    for (const { name } of e.attributes) if (name.startsWith("on")) faults.push(`${name} of an element`);
  }
  let level = 0;
  for (const e of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const own = Number(e.tagName[1]);
    if (own > level + 1) faults.push(`a level is skipped before ${e.textContent}`);
    level = own;
  }
  for (const mark of ["header", "nav", "main", "footer", "h1"])
    if (document.querySelectorAll(mark).length !== 1) faults.push(`not one ${mark}`);
  if (document.documentElement.scrollWidth > innerWidth)
    faults.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  // Contrast, as WCAG 2.2 computes it: 4.5 for text.
  const parse = (c) => (c.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const of = parse(getComputedStyle(at).backgroundColor);
      if (of.length === 3 || of[3] === 1) return of;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  for (const e of all) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility() || e.matches("script, title, desc")) continue;
    const style = getComputedStyle(e);
    const text = parse(e.closest("svg") ? style.fill : style.color);
    const box = e.matches("svg .w") && (e.parentElement.querySelector(".side") ?? document.querySelector('#two .side'));
    const ground = box ? parse(getComputedStyle(box).fill) : behind(e);
    const [a, b] = [light(text), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${e.outerHTML.slice(0, 120)}`);
  }
  return [...new Set(faults)];
})()"#;

/// Looks at a page in every way.
#[track_caller]
fn expect_sound(browser: &mut Browser, page: &Path) {
    for look in looks() {
        browser.open(page, look);
        // Everything is looked at unfolded too.
        for unfold in
            ["0", "document.querySelectorAll('details').forEach((d) => { d.open = true })"]
        {
            browser.evaluate(unfold);
            assert_eq!(browser.evaluate(FAULTS), json!([]), "{look:?}");
        }
        let ready = browser.evaluate("document.documentElement.dataset.ready ?? null");
        assert_eq!(ready, if look.scripts { json!("yes") } else { json!(null) }, "{look:?}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{look:?}");
    }
}

#[test]
#[ignore = "needs Chromium"]
fn pages_are_sound_however_they_are_looked_at() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    for trace in [
        "fail/csan/csan_expired_record.trace",
        "fail/copies/source_order_any.trace",
        "recorded/racy/torch_unordered.db",
        "recorded/torch_graph.db",
        "recorded/jax.db",
    ] {
        let page = bench.page(&corpus(trace), &["--fail-on", "latent"]);
        expect_sound(&mut browser, &page);
    }
    let page = bench.page_of("# nothing\n", &[]);
    expect_sound(&mut browser, &page);
    let heading = browser.evaluate("document.querySelector('h1').textContent");
    assert!(heading.as_str().is_some_and(|text| text.starts_with("NO CUDA")), "{heading}");
}

/// The pages on classes have a trace each that shows the class.
#[test]
#[ignore = "needs Chromium"]
fn every_class_has_a_sound_page() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings");
    let mut seen = 0;
    for page in fs::read_dir(folder).expect("a folder") {
        let path = page.expect("a page").path();
        let text = fs::read_to_string(&path).expect("a text");
        let Some((_, trace)) = text.split_once("\n```trace-bad\n") else { continue };
        let (trace, _) = trace.split_once("```").expect("the trace ends");
        let class = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let page = bench.page_of(trace, &["--fail-on", "lint", "--verify"]);
        for look in [Look::DESK, Look { width: 390, dark: true, scripts: true }] {
            browser.open(&page, look);
            browser
                .evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })");
            assert_eq!(browser.evaluate(FAULTS), json!([]), "{class}: {look:?}");
            assert_eq!(browser.complaints(), Vec::<String>::new(), "{class}: {look:?}");
        }
        let link = format!(".finding a[href='#class-{class}']");
        let told = browser.evaluate(&format!("document.querySelectorAll({link:?}).length > 0"));
        assert_eq!(told, true, "{class}");
        seen += 1;
    }
    assert_eq!(seen, 18);
}

#[test]
#[ignore = "needs Chromium"]
fn race_is_told_and_drawn() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page(&corpus("recorded/racy/torch_unordered.db"), &["--verify"]);
    for scripts in [true, false] {
        browser.open(&page, Look { scripts, ..Look::DESK });
        let texts = |browser: &mut Browser, what: &str| {
            let ask = format!("[...document.querySelectorAll('{what}')].map((e) => e.textContent)");
            browser.evaluate(&ask).as_array().cloned().unwrap_or_default()
        };
        let first = |browser: &mut Browser, what: &str| {
            texts(browser, what)
                .first()
                .map_or(String::new(), |text| text.as_str().unwrap_or("").to_owned())
        };
        assert!(first(&mut browser, "h1").starts_with("RACY 1 race"));
        let facts = texts(&mut browser, "header .facts dt");
        for fact in ["Program", "Trace", "Device", "Driver"] {
            assert!(facts.contains(&json!(fact)), "{facts:?}");
        }
        assert!(first(&mut browser, ".finding h3").contains("read-after-write race on 20.0 MiB"));
        let sides = texts(&mut browser, ".sides h4");
        assert!(
            sides[0].as_str().is_some_and(|side| side.starts_with("(1) first READ-WRITE")),
            "{sides:?}"
        );
        assert!(
            sides[1].as_str().is_some_and(|side| side.starts_with("(2) later READ")),
            "{sides:?}"
        );
        let stack = first(&mut browser, ".sides ul");
        assert!(stack.contains("torch_unordered.py:12 in produce"), "{stack}");
        let body = first(&mut browser, ".finding .body");
        for part in [
            "no happens-before path: the stream of (1) is non-blocking, and so the default stream",
            "let the default stream wait for the stream of (1) before (2)before ",
            "torch_unordered.py:16torch.cuda.default_stream().wait_stream(stream_of_1)",
            "verified: with it this finding disappears",
            "the default stream knows nothing of stream 0x394a71b0; it needs at least #297",
        ] {
            assert!(body.contains(part), "{part}: {body}");
        }
        // Both accesses, in rows of their own, and the line between them that is missing.
        let drawn = browser.evaluate(
            "(() => {
               const svg = document.querySelector('.finding svg');
               const tops = [...svg.querySelectorAll('.w')].map((r) => r.getBoundingClientRect().top);
               return [tops.length, tops[0] < tops[1], svg.querySelectorAll('.missing').length,
                       svg.querySelector('.none').textContent, svg.getBoundingClientRect().width > 300];
             })()",
        );
        assert_eq!(drawn, json!([2, true, 1, "no order", true]));
        let words = first(&mut browser, ".finding svg desc");
        assert!(words.ends_with("From (1) to (2): no order."), "{words}");
        assert!(words.contains("#297 (1) read-write MulFunctor"), "{words}");
        // The class is explained in the page.
        let link =
            browser.evaluate("document.querySelector('.finding .body a').getAttribute('href')");
        assert_eq!(link, "#class-legacy-vs-nonblocking");
        let explained = first(&mut browser, "#class-legacy-vs-nonblocking");
        assert!(explained.contains("cudaStreamNonBlocking"), "{explained}");
    }
}

#[test]
fn lines_of_the_named_directory_are_quoted_with_their_calls() {
    let (bench, sources) = (Bench::new(), Bench::new());
    let source = sources.file("step.cc");
    fs::write(&source, "first();\ncuLaunchKernel(produce);\nlaunch<8>(consume);\n")
        .expect("a source");
    let place = source.display();
    let text = format!(
        "stream work nonblocking\nstream other nonblocking\nalloc X 4096\n\
         stack first /proj/app+64:run@{place}:2\nstack second /proj/app+80:run@{place}:3\n\
         launch work produce w:X stack=first\nlaunch other consume r:X stack=second\n"
    );
    let page = |more: &[&str]| fs::read_to_string(bench.page_of(&text, more)).expect("a page");
    let without = page(&[]);
    assert!(!without.contains("<mark>"), "the file lies elsewhere");
    assert!(without.contains("below <code>--source-root</code>"));
    let root = sources.0.path().to_str().expect("UTF-8");
    let page = page(&["--source-root", root]);
    assert!(!page.contains("--source-root"));
    for line in ["<mark>cuLaunchKernel</mark>(produce);", "launch&lt;8&gt;(<mark>consume</mark>);"]
    {
        assert!(page.contains(line), "{line}");
    }
}

#[test]
#[ignore = "needs Chromium"]
fn events_around_a_race_are_drawn_with_their_edges() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page_of(SMALL, &[]);
    browser.open(&page, Look::DESK);
    assert_eq!(browser.evaluate("document.querySelectorAll('.drawing tspan').length"), 6);
    let words = browser.evaluate("document.querySelector('.drawing desc').textContent");
    let words = words.as_str().expect("a text");
    for part in ["#6 record done", "#7 wait done", "(1) write produce", "Edges: #6 to #7."] {
        assert!(words.contains(part), "{part}: {words}");
    }
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.drawing .edge:not(.chance)').length"),
        1
    );
}

#[test]
#[ignore = "needs Chromium"]
fn search_leaves_what_is_asked_for() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page_of(&many(30), &[]);
    browser.open(&page, Look::DESK);
    let mut search = |words: &str| {
        browser.evaluate(&format!(
            "(() => {{
               const field = document.getElementById('search');
               field.value = {words:?};
               field.dispatchEvent(new Event('input', {{ bubbles: true }}));
               const shown = [...document.querySelectorAll('.finding')].filter((e) => e.checkVisibility());
               return [shown.length, document.getElementById('hits').textContent];
             }})()"
        ))
    };
    assert_eq!(search("kernel_7_produce step_7.cc"), json!([1, "1 of 30 shown"]));
    assert_eq!(search("BUFFER_1"), json!([11, "11 of 30 shown"]));
    assert_eq!(search("nowhere"), json!([0, "0 of 30 shown"]));
    assert_eq!(search(" "), json!([30, "30 findings"]));
    // A link to a finding unfolds it.
    let id = browser.evaluate("document.querySelectorAll('.finding')[20].id");
    let id = id.as_str().expect("an id");
    assert_eq!(browser.evaluate(&format!("document.getElementById('{id}').open")), false);
    browser.open_address(&format!("file://{}#{id}", page.display()), Look::DESK);
    assert_eq!(browser.evaluate(&format!("document.getElementById('{id}').open")), true);
}

/// A trace of so many different mistakes.
fn many(mistakes: usize) -> String {
    let mut text = "stream work nonblocking\nstream other nonblocking\n".to_owned();
    for n in 0..mistakes {
        let _ = writeln!(
            text,
            "stack s{n} /proj/app+{}:run_{n}@/proj/src/step_{n}.cc:{n} /proj/app+64:main@/proj/main.cc:7",
            n + 128
        );
        let _ = writeln!(text, "alloc buffer_{n} 4096 stack=s{n}");
        let _ = writeln!(text, "launch work kernel_{n}_produce w:buffer_{n} stack=s{n}");
        let _ = writeln!(text, "launch other kernel_{n}_consume r:buffer_{n} stack=s{n}");
    }
    text
}

#[test]
#[ignore = "needs Chromium"]
fn thousand_findings_fit() {
    let bench = Bench::new();
    let page = bench.page_of(&many(1000), &[]);
    let bytes = fs::metadata(&page).expect("a page").len();
    assert!(bytes < 2_000_000, "{bytes}");
    let mut browser = Browser::start();
    browser.open(&page, Look::DESK);
    let counts = browser.evaluate(
        "['.finding', '.finding svg :is(.missing, use)', '.finding .sides > div']
           .map((what) => document.querySelectorAll(what).length)",
    );
    assert_eq!(counts, json!([1000, 1000, 2000]), "{bytes} bytes");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "needs Chromium"]
fn more_findings_than_there_is_room_for_are_told_shorter() {
    let bench = Bench::new();
    let page = bench.page_of(&many(4500), &[]);
    let bytes = fs::metadata(&page).expect("a page").len();
    assert!(bytes < 2_000_000, "{bytes}");
    let mut browser = Browser::start();
    browser.open(&page, Look::DESK);
    let told = browser.evaluate("document.querySelector('#findings').textContent");
    let told = told.as_str().expect("a text");
    assert!(told.contains("in a row each") && told.contains("500 findings are not listed"));
    let rows = browser.evaluate(
        "document.querySelectorAll('.finding').length + document.querySelectorAll('#findings tbody tr').length",
    );
    assert_eq!(rows, 4000);
}

#[test]
#[ignore = "needs Chromium"]
fn names_of_strangers_stay_text() {
    let bench = Bench::new();
    let quoted = HOSTILE.replace('"', "''").replace(' ', "_");
    let text = format!(
        "stack s /proj/{quoted}+64:{quoted}@/proj/{quoted}.cc:7\nstream work nonblocking\n\
         stream other nonblocking\nevent done\nalloc data 4096 stack=s\nrecord done work\n\
         launch work {quoted} w:data stack=s\nwait other done\nlaunch other {quoted} r:data stack=s\n"
    );
    let page = bench.page_of(&text, &[]);
    let written = fs::read_to_string(&page).expect("a page");
    assert!(!written.contains('\u{202e}') && written.contains("\\u{202e}"));
    let mut browser = Browser::start();
    expect_sound(&mut browser, &page);
    let found = browser.evaluate(
        "[document.title, document.images.length, document.querySelectorAll('b').length > 0,
          document.body.textContent.includes(\"</script><script>document.title='forged'</script>\"),
          [...document.scripts].filter((s) => s.textContent.includes('forged')).length]",
    );
    assert_eq!(found, json!(["streamsan: RACY", 0, true, true, 0]));
}

/// A race with events around it; the numbers of its calls are its lines.
const SMALL: &str = "stream a nonblocking\nstream b nonblocking\nevent done\nalloc X 4096\n\
    launch a early w:X\nrecord done a\nwait b done\nlaunch a produce w:X\nlaunch b consume r:X\n";
