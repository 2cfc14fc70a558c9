//! Random keys, sizes and clicks: nothing panics, and nothing leaves the trace.

use crate::driver::Driver;
use crate::pair::{Both, two_sides};
use crate::ranks::ranks;
use crate::trace::Shape;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use streamsan_tui::state::Viewport;
use streamsan_tui::{Glyphs, Palette, TABLE, Theme};

#[derive(Clone, Debug)]
enum Input {
    Key(KeyCode, bool),
    Mouse(u8, u16, u16, bool),
    Resize(u16, u16),
    /// Keys before the answers to those before them.
    Hasty(KeyCode),
}

fn key() -> impl Strategy<Value = KeyCode> {
    let known: Vec<KeyCode> = TABLE
        .iter()
        .flat_map(|b| b.keys)
        .map(|key| key.code)
        .filter(|&c| c != KeyCode::Char('q'))
        .collect();
    prop_oneof![
        8 => prop::sample::select(known),
        1 => proptest::char::range(' ', '~').prop_map(KeyCode::Char),
        1 => prop::sample::select(vec![KeyCode::Backspace, KeyCode::Enter, KeyCode::F(1), KeyCode::Char('µ')]),
    ]
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        12 => (key(), prop::bool::weighted(0.1)).prop_map(|(key, control)| Input::Key(key, control)),
        3 => (0u8..8, 0u16..130, 0u16..50, any::<bool>()).prop_map(|(k, x, y, s)| Input::Mouse(k, x, y, s)),
        1 => (0u16..200, 0u16..70).prop_map(|(w, h)| Input::Resize(w, h)),
        3 => key().prop_map(Input::Hasty),
    ]
}

fn mouse(kind: u8, column: u16, row: u16, shift: bool) -> MouseEvent {
    let kind = match kind {
        0 => MouseEventKind::ScrollUp,
        1 => MouseEventKind::ScrollDown,
        2 => MouseEventKind::ScrollLeft,
        3 => MouseEventKind::Drag(MouseButton::Left),
        4 => MouseEventKind::Moved,
        5 => MouseEventKind::Down(MouseButton::Right),
        6 => MouseEventKind::Down(MouseButton::Left),
        _ => MouseEventKind::Up(MouseButton::Left),
    };
    let modifiers = if shift { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
    MouseEvent { kind, column, row, modifiers }
}

fn check(driver: &Driver) {
    for view in driver.state.views.values() {
        assert!(view.is_inside(), "{view:?}");
    }
    assert!(driver.state.cursor < driver.state.rows.len().max(1));
    for (palette, glyphs) in
        [(Palette::TrueColour, Glyphs::Unicode), (Palette::Plain, Glyphs::Ascii)]
    {
        driver.buffer(Theme { palette, glyphs });
    }
}

fn run(mut driver: Driver, inputs: &[Input]) {
    check(&driver);
    for input in inputs {
        match *input {
            Input::Key(code, control) => {
                // Ctrl-C quits; that is tested elsewhere.
                let control = control && code != KeyCode::Char('c');
                let modifiers = if control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                driver.key(KeyEvent::new(code, modifiers));
            }
            Input::Mouse(kind, x, y, shift) => {
                driver.state.mouse(mouse(kind, x, y, shift));
                driver.settle();
            }
            Input::Resize(width, height) => {
                driver.state.resize(width, height);
                driver.state.ask_for_screen();
                driver.settle();
            }
            Input::Hasty(code) => driver.state.key(KeyEvent::new(code, KeyModifiers::NONE)),
        }
        check(&driver);
        driver.state.take_effects();
    }
}

fn run_pair(mut both: Both, inputs: &[Input]) {
    for input in inputs {
        match *input {
            Input::Key(code, control) => {
                let control = control && code != KeyCode::Char('c');
                let modifiers = if control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
                both.pair.key(KeyEvent::new(code, modifiers));
                both.settle();
            }
            Input::Mouse(kind, x, y, shift) => {
                both.pair.mouse(mouse(kind, x, y, shift));
                both.settle();
            }
            Input::Resize(width, height) => both.resize((width, height)),
            Input::Hasty(code) => both.pair.key(KeyEvent::new(code, KeyModifiers::NONE)),
        }
        let [a, b] = &both.pair.sides;
        for (axis, view) in &a.views {
            assert!(view.is_inside(), "{view:?}");
            let window = |view: &Viewport| (view.start, view.scale, view.columns);
            if let Some(other) = b.views.get(axis) {
                assert_eq!(window(view), window(other), "{input:?} {axis:?}");
            }
        }
        both.drawn(Theme::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_panics_and_nothing_leaves_the_trace(
        rounds in prop_oneof![Just(0u64), Just(1), Just(40), Just(300)],
        races: bool,
        times: bool,
        inputs in prop::collection::vec(input(), 1..150),
    ) {
        run(Driver::new(Shape { rounds, races, times }, 80, 24), &inputs);
    }

    #[test]
    fn several_traces_stay_where_they_can_be_found(
        inputs in prop::collection::vec(input(), 1..100),
    ) {
        let folder = tempfile::tempdir().unwrap();
        run(ranks(folder.path(), (80, 24)), &inputs);
    }

    #[test]
    fn both_sides_have_one_window(
        other: bool,
        inputs in prop::collection::vec(input(), 1..100),
    ) {
        let folder = tempfile::tempdir().unwrap();
        run_pair(two_sides(&folder, (120, 40), other), &inputs);
    }
}

/// A trace with nothing but the calls of a coverage.
fn without_operations(coverage: Option<streamsan_store::Coverage>) -> Driver {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    let mut writer = streamsan_store::Writer::create(&path, &crate::trace::meta()).unwrap();
    if let Some(coverage) = coverage {
        writer.set_coverage(&coverage).unwrap();
    }
    writer.finalize().unwrap();
    let reader = streamsan_store::Reader::open(&path).unwrap();
    Driver::over(reader, "empty.db", 80, 24)
}

/// Nothing seen is not clean; a call that is no operation is something.
#[test]
fn trace_without_a_driver_call_says_so() {
    use streamsan_model::IncompleteReason;
    use streamsan_store::{Coverage, EntryPoint, Treatment};
    let calls = |calls| Coverage {
        entry_points: vec![EntryPoint {
            name: "cuInit".to_owned(),
            treatment: Treatment::Harmless,
            calls,
        }],
        ..Coverage::default()
    };
    let unseen = Coverage { reasons: vec![IncompleteReason::NotAttached], ..Coverage::default() };
    for (coverage, expected) in [
        (None, "NO CUDA: no driver call was seen, so there was nothing to check."),
        (Some(calls(1)), "Everything that orders or touches memory was seen."),
        (Some(unseen), "Not seen:"),
    ] {
        let mut driver = without_operations(coverage);
        driver.keys("4");
        let text = driver.text();
        assert!(text.contains(expected), "{expected}\n{text}");
        // Above the pane, too.
        let count = if expected.starts_with("NO CUDA") { 2 } else { 0 };
        assert_eq!(text.matches("NO CUDA").count(), count, "{text}");
    }
}

#[test]
fn empty_trace_takes_every_key() {
    let mut driver = without_operations(None);
    for binding in TABLE {
        for key in binding.keys {
            let modifiers = if key.control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
            driver.key(KeyEvent::new(key.code, modifiers));
            driver.buffer(Theme::default());
        }
        driver.keys("<esc><esc><esc>");
    }
}
