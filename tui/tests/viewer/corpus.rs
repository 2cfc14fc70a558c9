//! The races of the corpus of text traces, as the engine finds them, on the screen; and the pictures
//! of `docs/viewer.md`.

use crate::driver::Driver;
use crate::picture::SIZES;
use crate::{pair, ranks, trace};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use streamsan_model::{
    Axis, Entities, Finding, LaneId, OpSeq, Operation, Severity, Tally, Threshold, TraceItem,
};
use streamsan_report::{Input, Report, TextOptions};
use streamsan_store::{Reader, Writer};
use streamsan_testing::corpus::traces;
use streamsan_testing::golden;
use streamsan_tui::{Explain, Glyphs, Palette, Theme, keys_document};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A text trace, analysed and stored; with what puts its findings into words.
pub(crate) fn open(text: &str, folder: &Path) -> (Reader, Explain) {
    open_items(streamsan_text::parse(text).unwrap().items, folder)
}

/// The same of the items of a trace.
pub(crate) fn open_items(items: Vec<TraceItem>, folder: &Path) -> (Reader, Explain) {
    let analysis = streamsan_analysis::analyse(&items);
    let path = folder.join("corpus.db");
    let mut writer = Writer::create(&path, &trace::meta()).unwrap();
    items.iter().for_each(|item| writer.item(item).unwrap());
    writer.replace_analysis(&analysis.edges, &analysis.findings).unwrap();
    writer.finalize().unwrap();
    let operations: Vec<Operation> = items
        .into_iter()
        .filter_map(|item| match item {
            TraceItem::Operation(operation) => Some(operation),
            _ => None,
        })
        .collect();
    let entities = analysis.entities;
    let explain = move |finding: &Finding| explain(finding, &entities, &operations);
    (Reader::open(&path).unwrap(), Box::new(explain))
}

fn explain(finding: &Finding, entities: &Entities, operations: &[Operation]) -> String {
    let input = Input {
        findings: [finding.clone()].into_iter().collect(),
        entities,
        threshold: Threshold::Lint,
        reasons: vec![],
        coverage: None,
        upstream: None,
        trace: None,
    };
    let find = |g: OpSeq| operations.iter().find(|operation| operation.g == g).cloned();
    // The viewer breaks lines itself.
    let options = TextOptions { columns: Some(usize::MAX), ..TextOptions::default() };
    let report = Report::new(input, find);
    report.render_in_full(&report.groups()[0], &options).trim_end().to_owned()
}

/// Every race: both rows and both operations are on the screen, whatever its size and the axis.
#[test]
fn every_race_of_the_corpus_is_framed() {
    let traces = traces("fail");
    let mut races = 0;
    for path in traces.iter().step_by(3) {
        let folder = tempfile::tempdir().unwrap();
        let (reader, explain) = open(&fs::read_to_string(path).unwrap(), folder.path());
        let mut driver = Driver::unopened(reader, 80, 24);
        driver.sources[0].explain = explain;
        driver.settle();
        let count = driver.state.open.as_ref().unwrap().of(0).findings.len();
        driver.keys("5");
        for _ in 0..count {
            driver.next_finding();
            let finding = driver.state.current_finding().unwrap().clone();
            let places = [&finding.first, &finding.second].map(|side| {
                // Nodes of graphs were made by calls that capture: these are operations too.
                let place = driver.place_of(side.op);
                place.unwrap_or_else(|| panic!("{}: #{} has no place", path.display(), side.op))
            });
            let view = driver.state.view().unwrap();
            for place in places {
                let at = place.on(view.axis).unwrap();
                assert!(view.grid().column(at).is_some(), "{}", path.display());
            }
            for size in SIZES {
                driver.resize(size);
                let overview = &driver.state.open.as_ref().unwrap().of(0).overview;
                let shown: Vec<LaneId> = driver
                    .state
                    .visible_rows()
                    .iter()
                    .filter_map(|shown| Some(overview.lanes[shown.row.lane()?].id))
                    .collect();
                for place in places {
                    let is_shown = shown.contains(&place.lane);
                    assert!(is_shown, "{} {size:?}\n{}", path.display(), driver.text());
                }
            }
            driver.resize((80, 24));
            let (_, words) = driver.state.explanation.as_ref().unwrap();
            assert!(words.contains(finding.class.description()), "{words}");
            races += 1;
        }
        for axis in 0..2 {
            driver.keys("xr");
            assert!(driver.state.axis != Some(Axis::Time), "{axis}");
            driver.buffer(Theme::default());
        }
    }
    assert!(races >= traces.len() / 3, "{races}");
}

/// The header of the viewer has the numbers of the report's verdict.
#[test]
fn the_header_counts_as_the_report() {
    for path in traces("fail") {
        let text = fs::read_to_string(&path).unwrap();
        let analysis = streamsan_analysis::analyse(&streamsan_text::parse(&text).unwrap().items);
        let input = Input {
            findings: analysis.findings.iter().cloned().collect(),
            entities: &analysis.entities,
            threshold: Threshold::default(),
            reasons: vec![],
            coverage: None,
            upstream: None,
            trace: None,
        };
        let report = Report::new(input, |_| None);
        let count = |fails: bool, races: bool| {
            let is = |g: &&streamsan_report::Group| {
                g.fails == fails && (!fails || races == (g.finding.severity == Severity::Race))
            };
            report.groups().iter().filter(is).count() as u64
        };
        let expected = Tally {
            races: count(true, true),
            others: count(true, false),
            below: count(false, false),
            upstream: 0,
            occurrences: report.groups().iter().map(|group| group.count).sum(),
        };
        let tally = Tally::of(
            analysis.findings.iter().map(|finding| (finding, false)),
            Threshold::default(),
        );
        assert_eq!(tally, expected, "{}", path.display());
    }
}

#[test]
fn occurrences_of_one_mistake_are_one_race_in_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let pair = "launch s1 store w:A\nlaunch s2 load r:A\nsync_ctx\n";
    let (reader, explain) = open(&pair.repeat(92), folder.path());
    let mut driver = Driver::unopened(reader, 120, 40);
    driver.sources[0].explain = explain;
    driver.settle();
    let text = driver.text();
    assert!(text.contains(" 1 race, seen 92 times"), "{text}");
    for occurrence in 1..3 {
        let text = driver.keys(if occurrence == 1 { "r" } else { "c" }).text();
        let here = format!("race 1/1 (occurrence {occurrence} of 92) race RAW");
        assert!(text.contains(&here), "{text}");
    }
}

/// The screen without colours, which a document does not have.
fn picture(driver: &Driver) -> String {
    picture_of(&driver.lines(WITHOUT_COLOURS))
}

pub(crate) const WITHOUT_COLOURS: Theme =
    Theme { palette: Palette::Plain, glyphs: Glyphs::Unicode };

pub(crate) fn picture_of(lines: &[String]) -> String {
    let mut text = String::from("```text\n");
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    text + "```\n"
}

/// A race, framed.
fn race_picture(keys: &str, height: u16) -> String {
    let path = root().join("traces/fail/wild/wild_04_unstashed_on_another_stream.trace");
    let folder = tempfile::tempdir().unwrap();
    let (reader, explain) = open(&fs::read_to_string(path).unwrap(), folder.path());
    let mut driver = Driver::unopened(reader, 100, height);
    driver.state.labels[0].title = "unstashed.db".to_owned();
    driver.sources[0].explain = explain;
    driver.settle();
    driver.keys(keys);
    picture(&driver)
}

fn document() -> String {
    let recorded = |keys: &str| {
        let reader = Reader::open(&root().join("traces/recorded/pytorch.db")).unwrap();
        let mut driver = Driver::over(reader, "pytorch.db", 100, 26);
        driver.keys(keys);
        picture(&driver)
    };
    let race = |keys: &str| race_picture(keys, 30);
    let commands = keys_document().lines().filter(|line| line.starts_with("| `")).count();
    assert!(commands > 40);
    format!(
        "# The viewer\n\n\
         Pictures made by `BLESS=1 cargo test -p streamsan-tui` from the traces in `traces/`, \
         without the colours that the\nviewer has on a terminal.\n\n\
         `streamsan view FILE` shows a trace, stored or text, in the terminal: one row a stream, \
         host threads above them, every call as a\nletter (a capital stands for several). `?` \
         shows the keys, [keys.md](keys.md) lists them, and a legend is always on\nthe screen. \
         Every race is shown, also one that is \
         [known in a library](report-format.md#races-known-in-libraries): the words about it\nsay \
         so.\n\n{}\n\
         The first line tells what the trace holds, the next ones show the whole of it, however \
         far one has zoomed in, in the\ncolour of the work; what the rows show of it is lighter (reversed \
         without colours), and `!` is a race. The line below the ruler marks every\ncolumn in which any row, on \
         the screen or not, has a side of a race.\n\n\
         Rows are as tall as the screen allows. The first line of a tall row is kept free for \
         edges, the last one has the\nletters. The bar above a letter tells by its height how \
         many operations the column holds, and by its colour and shape\nof which kind: kernels \
         are solid, copies dotted, waits a line, and what is neither work nor a wait is faint. A \
         kernel's\nlabel begins with what tells it from its neighbours (`MulFunctor`); the function \
         that carries it comes behind.\n\n\
         Streams and calls have the names that the report has for them; a stream without a name \
         of its own is told by the line\nthat created it, where the row is tall enough.\n\n\
         Where the program names its phases by [NVTX](host-side.md#nvtx-ranges), the ranges of a host \
         thread stand above its row,\na line a depth, the outermost three, fewer on small screens: each \
         begins with a bar and its name. A column that holds\nseveral is shaded. They follow issue order \
         and host time; the logical order has no place for them. A thread all of whose\ncalls are \
         issued to streams has no row, and no lines of ranges. The details name all ranges around the \
         selected call,\nand the operator of PyTorch that made it.\n\n\
         The pane takes the lines that its content needs and leaves the rows what they need; `<` \
         and `>`, or the mouse on its\ntabs, make it shorter and taller, `|` lets it choose again. Where a list or a text does \
         not fit, the headline ends\nwith the place in it, and the legend with the rows that are shown \
         (`rows 4-12 of 24`).\n\n\
         `x` switches the axis and keeps the zoom. *Issue order* is the order of the calls. *Host issue time* is when \
         the host made them: it says\nnothing of when the GPU did the work, and nothing is drawn as \
         a duration. *Logical order* is the happens-before depth:\nthe length of the longest \
         documented chain of operations that ends in one. What has the same depth is unordered.\n\n\
         {}\n\
         ## Filters, sources and bytes\n\n`\\` filters: words of rows' names, and operations by \
         `kernel:`, `file:`, `function:` (of the call's stack), `allocation:`\n(by id or name), \
         `range:` (an [NVTX range](host-side.md#nvtx-ranges) around the call, by its name or domain); \
         several,\ndivided by commas, must all be met, of one kind one is enough. The last line \
         counts the hits,\nrows without one go, what is no hit stands back (`·` without colours), and \
         `n` and `N` go from hit to hit. At most\n10,000 hits are marked; all are counted.\n\n\
         `e` opens the editor that `VISUAL` or `EDITOR` names at the line of the program that made \
         the selected call. Where the\nprogram ran elsewhere, the file is looked for by the end of its \
         path below the working directory.\n\n\
         `6` shows the bytes of memory over the whole trace, and who holds most of them: by \
         allocation or, with `S`, by the line\nof the program that allocated. Enter shows the uses of \
         an allocation. Bytes count from the\nallocating call to the freeing one, in the order of \
         the calls; ordinary host memory is left out.\n\n{}\n\
         ## A race\n\n`r` goes from race to race, `c` through the occurrences of one. Both accesses are framed, and both rows are on \
         the screen. The two sides, with the\nnumbers that the words about the race give them, and \
         the edge that is missing are the brightest things there: all\nelse stands back. With colours \
         a side of a race keeps its letter; without, it is `!`. The selected operation's own\nedges \
         are drawn through, and `[` and `]` follow them. A line runs between the rows and is \
         interrupted where it crosses\nwhat it does not mean. `5` says why, in the report's words and \
         colours.\n\nA race that is [known in a library](report-format.md#races-known-in-libraries) is \
         drawn as accepted: its calls keep their\nletters, underlined, and its marks below the ruler \
         are hollow (`▽`). When one goes to it, it is framed as any other.\n\n{}\n\
         `o` goes to the other access, `1` shows details, and Enter in the pane the memory it is \
         about: which stream touched\nwhich bytes, `!` where the two accesses conflict.\n\n{}\n\
         ## Several traces\n\n{}\n{}\n## Before and after\n\n{}\n{}\n{}\
         ## Elsewhere\n\n\
         - Colours are those of Okabe and Ito's set, in 24 bits where `COLORTERM` says `truecolor`, \
         else as the nearest of 256,\n  or as 16 on terminals that have no more. `NO_COLOR=1` leaves \
         them out; everything is told by letters and shapes too.\n\
         - `--ascii` draws with ASCII characters only; so do locales other than UTF-8.\n\
         - `--race ID` begins with the race of that id, as reports print it.\n\
         - A trace that is still being recorded, or whose recording was killed, can be viewed up \
         to its last commit.\n",
        recorded("jjwf"),
        recorded("jjxxwwwf"),
        recorded("6"),
        race("r5"),
        race("r3<enter><enter>"),
        include_str!("several_traces.md"),
        ranks::picture_of_ranks(),
        include_str!("both_sides.md"),
        pair::picture_of_both(),
        include_str!("while_it_runs.md"),
    )
}

#[test]
fn viewer_document_is_up_to_date() {
    let path = root().join("docs/viewer.md");
    golden::check(&path, &document());
}

/// The picture in the README, between two comments.
#[test]
fn picture_in_the_readme_is_up_to_date() {
    const MARKS: [&str; 2] = ["<!-- viewer -->\n", "<!-- /viewer -->"];
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).expect("the mark before the picture");
    let (_, after) = rest.split_once(MARKS[1]).expect("the mark behind the picture");
    let wanted = race_picture("r5", 24);
    golden::check(&path, &format!("{before}{}{wanted}{}{after}", MARKS[0], MARKS[1]));
}
