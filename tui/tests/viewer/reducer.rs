//! The effect of every key.

use crate::driver::{Driver, parse};
use crate::trace::Shape;
use std::collections::BTreeSet;
use streamsan_model::{Axis, FootprintBy, LaneId, StreamId};
use streamsan_tui::query::{Request, Target};
use streamsan_tui::state::{Effect, Focus, Pane, Row, SortBy};
use streamsan_tui::{Command, State, TABLE, command_for};

fn start() -> Driver {
    Driver::new(Shape::default(), 80, 24)
}

fn scale(state: &State) -> i8 {
    state.view().unwrap().scale
}

fn window(state: &State) -> u64 {
    state.view().unwrap().start
}

fn message(state: &State) -> &str {
    state.message.as_ref().map_or("", |message| &message.text)
}

/// A command, keys before it, the keys of the command, and what must hold of the states before and
/// behind them.
type Case = (Command, &'static str, &'static str, fn(&State, &Driver) -> bool);

fn selected(driver: &Driver) -> u64 {
    driver.selected()
}

fn lane(driver: &Driver) -> LaneId {
    driver.state.selection.as_ref().unwrap().place.lane
}

fn before(state: &State) -> u64 {
    state.selection.as_ref().unwrap().operation.g.0
}

const CASES: &[Case] = &[
    (Command::ZoomIn, "", "w", |b, a| scale(&a.state) == scale(b) - 1),
    (Command::ZoomIn, "", "+=", |b, a| scale(&a.state) == scale(b) - 2),
    (Command::ZoomOut, "www", "s", |b, a| scale(&a.state) == scale(b) + 1),
    (Command::ZoomOut, "", "-", |b, a| scale(&a.state) == scale(b)),
    (Command::PanLeft, "www", "a", |b, a| window(&a.state) < window(b)),
    (Command::PanRight, "www", "d", |b, a| window(&a.state) > window(b)),
    (Command::PageLeft, "wwwDD", "A", |b, a| window(&a.state) < window(b)),
    (Command::PageRight, "www", "D", |b, a| {
        let columns = u64::from(b.view().unwrap().columns) / 4 * 4;
        let wide = if scale(b) < 0 { columns >> -scale(b) } else { columns << scale(b) };
        window(&a.state) == window(b) + wide
    }),
    (Command::ShowAll, "wwwwd", "0", |_, a| {
        let view = a.state.view().unwrap();
        view.grid().column(view.span.start).is_some()
            && view.grid().column(view.span.end - 1).is_some()
    }),
    (Command::Centre, "wwwwDD", "f", |b, a| {
        let at = before(b);
        let view = a.state.view().unwrap();
        scale(&a.state) == scale(b) && view.grid().column(at) == Some(view.columns / 2)
    }),
    (Command::Centre, "wwwwDDf", "f", |b, a| scale(&a.state) < scale(b)),
    (Command::SwitchAxis, "", "x", |_, a| a.state.axis == Some(Axis::Time)),
    (Command::SwitchAxis, "x", "x", |_, a| a.state.axis == Some(Axis::Logical)),
    (Command::SwitchAxis, "xx", "x", |_, a| a.state.axis == Some(Axis::Issue)),
    (Command::Follow, "", "F", |_, a| message(&a.state).contains("the trace is finished")),
    (Command::ShiftLeft, "", "{", |_, a| message(&a.state).contains("there is one trace")),
    (Command::ShiftRight, "", "}", |_, a| message(&a.state).contains("there is one trace")),
    (Command::Align, "", "&", |_, a| message(&a.state).contains("v at an operation")),
    (Command::NextTrace, "", "t", |_, a| message(&a.state) == "there is one trace"),
    (Command::PreviousTrace, "", "T", |_, a| message(&a.state) == "there is one trace"),
    (Command::NextOperation, "^", "l", |b, a| selected(a) > before(b)),
    (Command::NextOperation, "^", "<right>.", |b, a| selected(a) > before(b) + 2),
    (Command::NextOperation, "$", "l", |b, a| {
        selected(a) == before(b) && message(&a.state) == "last operation of the row"
    }),
    (Command::PreviousOperation, "$", "h", |b, a| selected(a) < before(b)),
    (Command::PreviousOperation, "$", "<left>,", |b, a| selected(a) < before(b)),
    (Command::PreviousOperation, "^", "h", |b, a| selected(a) == before(b)),
    (Command::FirstOperation, "$", "^", |b, a| selected(a) < before(b)),
    (Command::FirstOperation, "$", "<home>", |b, a| selected(a) < before(b)),
    (Command::LastOperation, "^", "$", |b, a| selected(a) > before(b)),
    (Command::LastOperation, "^", "<end>", |b, a| selected(a) > before(b)),
    (Command::RowDown, "gg", "j", |b, a| a.state.cursor > b.cursor),
    (Command::RowDown, "gg", "<down>", |b, a| a.state.cursor > b.cursor),
    (Command::RowUp, "G", "k", |b, a| a.state.cursor < b.cursor),
    (Command::RowUp, "G", "<up>", |b, a| a.state.cursor < b.cursor),
    (Command::RowUp, "gg", "k", |b, a| a.state.cursor == b.cursor),
    (Command::HalfPageDown, "gg", "<c-d>", |b, a| a.state.cursor > b.cursor + 1),
    (Command::HalfPageUp, "G", "<c-u>", |b, a| a.state.cursor + 1 < b.cursor),
    (Command::FirstRow, "G", "gg", |_, a| {
        a.state.rows[..a.state.cursor].iter().all(|row| row.lane().is_none())
    }),
    (Command::LastRow, "gg", "G", |_, a| a.state.cursor == a.state.rows.len() - 1),
    (Command::Search, "^", "/reduce<enter>", |_, a| {
        a.state.selection.as_ref().unwrap().operation.api.contains("Launch")
            && lane(a) == LaneId::Stream(StreamId(0))
    }),
    (Command::Search, "", "/#25<enter>", |_, a| selected(a) == 25),
    (Command::Search, "", "/#26<enter>", |b, a| {
        selected(a) == before(b) && message(&a.state) == "the trace holds no operation #26"
    }),
    (Command::Search, "", "/nothing<enter>", |b, a| {
        selected(a) == before(b) && message(&a.state).contains("nothing matches")
    }),
    (Command::Search, "", "/abc<esc>", |_, a| a.state.search.is_none() && a.state.input.is_none()),
    (Command::SearchNext, "gg^/memset<enter>", "n", |b, a| selected(a) == before(b) + 16),
    (Command::SearchNext, "", "n", |_, a| message(&a.state) == "nothing was searched for"),
    (Command::SearchPrevious, "gg^/memset<enter>nn", "N", |b, a| selected(a) == before(b) - 16),
    (Command::SearchSame, "gg^/memset<enter>", "#", |b, a| selected(a) == before(b) + 16),
    (Command::SetMark, "", "ma", |b, a| a.state.marks[&'a'].op.0 == before(b)),
    (Command::SetMark, "", "m<esc>", |_, a| a.state.marks.is_empty()),
    (Command::JumpMark, "maG", "'a", |_, a| selected(a) == a.state.marks[&'a'].op.0),
    (Command::JumpMark, "", "'b", |_, a| message(&a.state) == "no mark b"),
    (Command::Area, "^", "vll", |b, a| {
        let (from, to) = a.state.area_ends().unwrap();
        from.op.0 == before(b) && to.op.0 == selected(a) && a.state.area.unwrap().to.is_none()
    }),
    (Command::Area, "^vll", "v", |_, a| a.state.area.unwrap().to.is_some()),
    (Command::NextFinding, "", "r", |b, a| b.finding.is_none() && a.state.finding == Some(0)),
    (Command::NextFinding, "r", "r", |_, a| a.state.finding == Some(1)),
    (Command::PreviousFinding, "", "R", |b, a| {
        b.finding.is_none() && a.state.finding == Some(a.state.list.shown.len() - 1)
    }),
    (Command::NextFinding, "R", "r", |_, a| a.state.finding == Some(0)),
    (Command::NextOccurrence, "r", "c", |_, a| message(&a.state) == "the race was seen once"),
    (Command::PreviousOccurrence, "", "C", |_, a| a.state.finding.is_some()),
    (Command::OtherSide, "r", "o", |_, a| {
        selected(a) == a.state.current_finding().unwrap().first.op.0
    }),
    (Command::OtherSide, "r", "oo", |_, a| {
        selected(a) == a.state.current_finding().unwrap().second.op.0
    }),
    (Command::EdgeBack, "gg^/streamwait<enter>", "[", |b, a| selected(a) == before(b) - 2),
    (Command::EdgeForward, "gg^/eventrecord<enter>", "]", |b, a| selected(a) == before(b) + 2),
    (Command::EdgeForward, "gg^", "]", |_, a| message(&a.state) == "no edge begins here"),
    (Command::Pin, "", "p", |b, a| a.state.filter.pinned == [b.selected_lane().unwrap()]),
    (Command::Pin, "p", "p", |_, a| a.state.filter.pinned.is_empty()),
    (Command::Filter, "", "\\decode<enter>", |b, a| {
        let lanes = a.state.rows.iter().filter(|row| row.lane().is_some()).count();
        lanes == 1 && b.rows.len() > 3
    }),
    (Command::Filter, "", "\\decode, thread<enter>", |_, a| a.state.rows.len() > 2),
    (Command::Filter, "", "\\kernel:reduce<enter>", |_, a| {
        let hits = a.state.hits.as_ref().unwrap();
        hits.total == 40
            && hits.lanes.len() == 1
            && a.state.rows.iter().filter_map(|r| r.lane()).count() == 1
    }),
    (Command::SearchNext, "\\kernel:reduce<enter>", "n", |b, a| selected(a) == before(b) + 16),
    (Command::SearchPrevious, "\\kernel:reduce<enter>n", "N", |b, a| selected(a) + 16 == before(b)),
    (Command::Filter, "", "\\kernel:none<enter>", |_, a| {
        a.state.rows.is_empty() && message(&a.state).contains("no operation matches")
    }),
    (Command::Filter, "", "\\colour:red<enter>", |b, a| {
        a.state.rows.len() == b.rows.len() && message(&a.state).contains("is none of")
    }),
    (Command::Back, "\\kernel:reduce<enter>", "<esc>", |b, a| {
        a.state.hits.is_none() && a.state.rows.len() > b.rows.len()
    }),
    (Command::Filter, "", "\\none such<enter>", |_, a| {
        a.state.rows.is_empty() && message(&a.state).contains("no row matches")
    }),
    (Command::Filter, "2<enter>", "\\class:stale<enter>", |_, a| {
        let open = a.state.open.as_ref().unwrap().of(0);
        !a.state.list.shown.is_empty()
            && a.state.list.shown.len() < open.findings.len()
            && a.state
                .list
                .shown
                .iter()
                .all(|&f| open.findings[f].class.description() == "stale-wait")
    }),
    (Command::ToggleIdle, "", "i", |b, a| a.state.rows.len() == b.rows.len() + 4),
    (Command::ToggleIdle, "i", "i", |b, a| a.state.rows.len() + 4 == b.rows.len()),
    (Command::PaneDetails, "2", "1", |_, a| a.state.pane == Pane::Details),
    (Command::PaneRaces, "", "2", |_, a| a.state.pane == Pane::Races),
    (Command::PaneMemory, "", "3", |_, a| a.state.memory.allocations.is_some()),
    (Command::PaneStatistics, "", "4", |_, a| a.state.calls.is_some()),
    (Command::PaneExplanation, "r", "5", |_, a| {
        let (place, text) = a.state.explanation.as_ref().unwrap();
        Some(*place) == a.state.finding && text.contains("why these are unordered")
    }),
    (Command::PaneBytes, "", "6", |_, a| a.state.footprint.known.is_some()),
    (Command::Sort, "6", "S", |_, a| {
        let (by, _) = a.state.footprint.known.as_ref().unwrap();
        *by == FootprintBy::Site && a.state.pane == Pane::Bytes
    }),
    (Command::PaneOutput, "", "7", |_, a| a.state.pane == Pane::Details),
    (Command::NextPane, "", "<tab>", |_, a| a.state.pane == Pane::Races),
    (Command::PreviousPane, "", "<backtab>", |_, a| a.state.pane == Pane::Bytes),
    (Command::Enter, "", "<enter>", |_, a| a.state.focus == Focus::Pane),
    (Command::Enter, "2<enter>jj", "<enter>", |_, a| a.state.finding == Some(2)),
    (Command::Enter, "r<enter>", "<enter>", |_, a| {
        a.state.pane == Pane::Memory && a.state.memory.history.is_some()
    }),
    (Command::Enter, "3<enter><enter>j", "<enter>", |_, a| {
        a.state.memory.history.as_ref().unwrap().uses[1].op.0 == selected(a)
    }),
    (Command::Expand, "", "z", |_, a| a.state.expanded && a.state.areas().rows.height == 0),
    (Command::Expand, "z", "z", |_, a| !a.state.expanded && a.state.areas().rows.height > 0),
    (Command::Grow, "", ">", |b, a| a.state.areas().pane.height == b.areas().pane.height + 2),
    (Command::Grow, "", ">>>>>>>>>>>>>>", |_, a| {
        a.state.areas().rows.height == 3 && message(&a.state).contains("all lines")
    }),
    (Command::Shrink, "", "<<<<", |_, a| {
        a.state.areas().pane.height == 2 && message(&a.state).contains("fewest lines")
    }),
    (Command::Shrink, ">", "<", |b, a| a.state.areas().pane.height + 2 == b.areas().pane.height),
    (Command::Fit, ">>", "|", |b, a| a.state.areas().pane.height < b.areas().pane.height),
    (Command::Sort, "", "S", |_, a| a.state.list.sort == SortBy::Gravity),
    (Command::Palette, "", ":axis<enter>", |_, a| a.state.axis == Some(Axis::Time)),
    (Command::Palette, "", ":#25<enter>", |_, a| selected(a) == 25),
    (Command::Palette, "", ":zzzz<enter>", |_, a| message(&a.state).contains("no command")),
    (Command::Palette, "", ":axis<back><back><back><back><back>", |_, a| a.state.input.is_none()),
    (Command::Edit, "", "e", |_, a| message(&a.state).contains("no line of the source")),
    (Command::ToggleMouse, "", "M", |_, a| !a.state.mouse),
    (Command::Help, "", "?", |_, a| a.state.help == Some(0)),
    (Command::Help, "?", "jj", |_, a| a.state.help == Some(2)),
    (Command::Help, "?", "?", |_, a| a.state.help.is_none()),
    (Command::Back, "?", "<esc>", |_, a| a.state.help.is_none() && !a.state.quit),
    (Command::Back, "z", "<esc>", |_, a| !a.state.expanded && a.state.focus == Focus::Timeline),
    (Command::Back, "v", "<esc>", |_, a| a.state.area.is_none()),
    (Command::Back, "r", "<esc>", |_, a| a.state.finding.is_none()),
    (Command::Back, "\\decode<enter>", "<esc>", |b, a| a.state.rows.len() > b.rows.len()),
    (Command::Back, "", "<esc><esc><esc>", |_, a| !a.state.quit),
    (Command::Quit, "", "q", |_, a| a.state.quit),
    (Command::Quit, "?", "q", |_, a| a.state.quit),
    (Command::Quit, "/", "<c-c>", |_, a| a.state.quit),
];

#[test]
fn every_key_does_what_it_says() {
    for (number, (command, first, keys, holds)) in CASES.iter().enumerate() {
        let mut driver = start();
        driver.keys(first);
        let before = driver.state.clone();
        driver.keys(keys);
        assert!(
            holds(&before, &driver),
            "case {number}: {command:?} by {keys:?} after {first:?}\n{}",
            driver.text()
        );
    }
}

/// Copying is an effect; its text is what the pane shows.
#[test]
fn copy_hands_out_what_is_selected() {
    let mut driver = start();
    driver.keys("y");
    assert_eq!(driver.state.take_effects(), [Effect::Copy]);
    driver.keys("M");
    assert_eq!(driver.state.take_effects(), [Effect::Mouse(false)]);
}

#[test]
fn every_command_has_a_case() {
    let tested: BTreeSet<String> = CASES.iter().map(|(c, ..)| format!("{c:?}")).collect();
    for binding in TABLE {
        let name = format!("{:?}", binding.command);
        assert!(tested.contains(&name) || binding.command == Command::Copy, "{name}");
    }
}

#[test]
fn the_table_finds_its_own_keys() {
    for event in parse("wsad<c-d><c-c>") {
        assert!(command_for(event, None).is_some(), "{event:?}");
    }
    assert_eq!(command_for(parse("g")[0], None), None);
    assert_eq!(command_for(parse("g")[0], Some('g')), Some(Command::FirstRow));
}

/// Keys that come faster than answers: steps add up, and only the newest window is asked for.
#[test]
fn hasty_keys_lose_nothing() {
    let mut driver = start();
    driver.keys("^");
    let begin = driver.selected();
    let mut slow = start();
    slow.keys("^lllll");
    for key in parse("lllllll") {
        driver.state.key(key);
    }
    for key in parse("hh") {
        driver.state.key(key);
    }
    let requests = driver.state.take_requests();
    let selects: Vec<_> = requests
        .iter()
        .filter_map(|request| match &request.value {
            Request::Select(Target::Steps { steps, from, .. }) => Some((*steps, from.0)),
            _ => None,
        })
        .collect();
    assert_eq!(selects, [(5, begin)]);
    requests.into_iter().for_each(|request| driver.state_ask(request));
    driver.settle();
    assert_eq!(driver.selected(), slow.selected());
}

/// An answer to a question that was asked anew since is dropped.
#[test]
fn late_answers_are_dropped() {
    let mut driver = start();
    driver.keys("^");
    for key in parse("l") {
        driver.state.key(key);
    }
    let old = driver.state.take_requests();
    for key in parse("G") {
        driver.state.key(key);
    }
    let last = driver.state.rows.len() - 1;
    old.into_iter().for_each(|request| driver.state_ask(request));
    assert_eq!(driver.state.cursor, last);
    driver.settle();
    assert_eq!(driver.state.rows[driver.state.cursor].lane(), driver.state.selected_lane());
    let shown = driver.state.open.as_ref().unwrap().of(0).overview.lanes
        [driver.state.selected_lane().unwrap()]
    .id;
    assert_eq!(lane(&driver), shown);
}

/// Both rows of a race are shown, also where they are far apart.
#[test]
fn race_shows_both_rows() {
    for height in [12, 24, 40] {
        let mut driver = Driver::new(Shape::default(), 80, height);
        for _ in 0..5 {
            driver.keys("r");
            let finding = driver.state.current_finding().unwrap();
            let open = driver.state.open.as_ref().unwrap().of(0);
            for side in [&finding.first, &finding.second] {
                let lane = LaneId::Stream(side.stream.unwrap());
                let shown = driver.state.visible_rows().iter().any(|shown| match shown.row {
                    Row::Lane(place) => open.overview.lanes[place].id == lane,
                    _ => false,
                });
                assert!(shown, "{height}: {lane:?}\n{}", driver.text());
                let view = driver.state.view().unwrap();
                let at = driver.place_of(side.op).unwrap().on(view.axis).unwrap();
                assert!(view.grid().column(at).is_some());
            }
        }
    }
}

#[test]
fn mouse_selects_zooms_and_drags() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind as Kind};
    let mut driver = start();
    let areas = driver.state.areas();
    let at = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    let before = scale(&driver.state);
    driver.state.mouse(at(Kind::ScrollUp, 50, areas.rows.y));
    driver.state.mouse(at(Kind::ScrollUp, 50, areas.rows.y));
    driver.settle();
    assert_eq!(scale(&driver.state), before - 2);
    let begin = window(&driver.state);
    driver.state.mouse(at(Kind::Down(MouseButton::Left), 60, areas.rows.y));
    driver.state.mouse(at(Kind::Drag(MouseButton::Left), 40, areas.rows.y));
    driver.state.mouse(at(Kind::Up(MouseButton::Left), 40, areas.rows.y));
    driver.settle();
    assert!(window(&driver.state) > begin);
    // A click on a row selects its nearest operation; one on a tab shows the pane.
    driver.keys("0");
    let shown = driver.state.visible_rows();
    let row = *shown.iter().find(|shown| shown.row.lane().is_some()).unwrap();
    let line = row.letters();
    let click = |driver: &mut Driver, column, row| {
        driver.state.mouse(at(Kind::Down(MouseButton::Left), column, row));
        driver.state.mouse(at(Kind::Up(MouseButton::Left), column, row));
        driver.settle();
    };
    click(&mut driver, 30, areas.rows.y + line);
    assert_eq!(driver.state.selected_lane(), row.row.lane());
    click(&mut driver, 12, areas.pane.y);
    assert_eq!(driver.state.pane, Pane::Races);
    click(&mut driver, 12, areas.pane.y + 3);
    assert_eq!(driver.state.finding, Some(1));
    driver.keys("M");
    click(&mut driver, 2, areas.pane.y);
    assert_eq!(driver.state.pane, Pane::Races);
}

/// The axes of a trace without host times.
#[test]
fn trace_without_times_has_two_axes() {
    let mut driver = Driver::new(Shape { times: false, ..Shape::default() }, 80, 24);
    driver.keys("x");
    assert_eq!(driver.state.axis, Some(Axis::Logical));
    driver.keys("x");
    assert_eq!(driver.state.axis, Some(Axis::Issue));
}

#[test]
fn trace_opens_at_a_race() {
    let folder = tempfile::tempdir().unwrap();
    let reader = crate::trace::write(folder.path(), Shape::default());
    let findings = streamsan_model::TraceQuery::findings(&reader).unwrap();
    let wanted = findings[3].fingerprint.to_string();
    let mut driver = Driver::unopened(reader, 80, 24);
    driver.state.start_at(wanted);
    driver.settle();
    assert_eq!(driver.state.finding, Some(3));
    assert_eq!(driver.selected(), findings[3].second.op.0);
}
