//! Drives the real state and view code without threads: every question is answered at once.

use crate::trace::{self, Shape};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use streamsan_model::{OpSeq, Place, TraceQuery};
use streamsan_store::Reader;
use streamsan_tui::query::{Numbered, Request, Source, answer};
use streamsan_tui::state::Label;
use streamsan_tui::traces::OpRef;
use streamsan_tui::{Explain, State, Theme, render};

pub(crate) struct Driver {
    pub(crate) state: State,
    pub(crate) sources: Vec<Source>,
    _folder: Option<tempfile::TempDir>,
}

impl Driver {
    pub(crate) fn new(shape: Shape, width: u16, height: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let reader = trace::write(folder.path(), shape);
        Self { _folder: Some(folder), ..Self::over(reader, "pipeline.db", width, height) }
    }

    pub(crate) fn over(reader: Reader, title: &str, width: u16, height: u16) -> Self {
        let mut driver = Self::unopened(reader, width, height);
        driver.state.labels[0].title = title.to_owned();
        driver.settle();
        driver
    }

    /// Nothing is answered yet.
    pub(crate) fn unopened(reader: Reader, width: u16, height: u16) -> Self {
        let state = State::new("", (width, height));
        Self { state, sources: vec![source(reader)], _folder: None }
    }

    /// Several traces, aligned by where they begin.
    pub(crate) fn over_several(traces: Vec<(Reader, Label)>, (width, height): (u16, u16)) -> Self {
        let (readers, labels): (Vec<Reader>, Vec<Label>) = traces.into_iter().unzip();
        let mut state = State::of_traces(labels, (width, height));
        state.clock = "by the monotonic clock of their machine".to_owned();
        let sources = readers.into_iter().map(source).collect();
        let mut driver = Self { state, sources, _folder: None };
        driver.settle();
        driver
    }

    /// Where an operation of the first trace is drawn.
    pub(crate) fn place_of(&self, g: OpSeq) -> Option<Place> {
        self.state.place_of(OpRef { trace: 0, g }).map(|spot| spot.place)
    }

    /// The first trace.
    pub(crate) fn reader(&self) -> &dyn TraceQuery {
        &*self.sources[0].query
    }

    /// Answers one question.
    pub(crate) fn state_ask(&mut self, request: Numbered<Request>) {
        let Numbered { number, slot, value } = request;
        let value = answer(&mut self.sources, &value);
        self.state.receive(Numbered { number, slot, value });
    }

    /// Answers until nothing is asked any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let requests = self.state.take_requests();
            if requests.is_empty() {
                return;
            }
            requests.into_iter().for_each(|request| self.state_ask(request));
        }
        panic!("the state asks for ever");
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        self.state.key(key);
        self.settle();
    }

    /// Keys as they are written: `r`, `<esc>`, `<c-d>`.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        for key in parse(keys) {
            self.key(key);
        }
        self
    }

    /// Goes to the next finding: the next occurrence of the mistake, or the next mistake.
    pub(crate) fn next_finding(&mut self) -> &mut Self {
        let list = &self.state.list;
        let here = list.shown.iter().position(|&place| Some(place) == self.state.finding);
        let is_last =
            here.is_none_or(|here| list.occurrences[here].number == list.occurrences[here].of);
        self.keys(if is_last { "r" } else { "c" })
    }

    pub(crate) fn buffer(&self, theme: Theme) -> Buffer {
        let (width, height) = self.state.size;
        let area = Rect { x: 0, y: 0, width, height };
        let mut buffer = Buffer::empty(area);
        render(&self.state, theme, area, &mut buffer);
        buffer
    }

    pub(crate) fn lines(&self, theme: Theme) -> Vec<String> {
        let buffer = self.buffer(theme);
        let area = *buffer.area();
        (0..area.height)
            .map(|y| (0..area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>())
            .map(|line| line.trim_end().to_owned())
            .collect()
    }

    pub(crate) fn text(&self) -> String {
        self.lines(Theme::default()).join("\n")
    }

    /// Another size of the screen.
    pub(crate) fn resize(&mut self, (width, height): (u16, u16)) -> &mut Self {
        self.state.resize(width, height);
        self.state.ask_for_screen();
        self.settle();
        self
    }

    /// Lines of an area of the screen.
    pub(crate) fn lines_of(&self, area: Rect, theme: Theme) -> Vec<String> {
        let lines = self.lines(theme);
        lines[usize::from(area.y)..usize::from(area.bottom())].to_vec()
    }

    /// The selected operation's index.
    pub(crate) fn selected(&self) -> u64 {
        self.state.selection.as_ref().map_or(0, |detail| detail.operation.g.0)
    }
}

fn source(reader: Reader) -> Source {
    let explain: Explain = Box::new(|finding| {
        format!(
            "error[{}]: #{} then #{}\nwhy these are unordered\n  nothing orders them",
            finding.class.description(),
            finding.first.op,
            finding.second.op
        )
    });
    Source { query: Box::new(reader), explain }
}

pub(crate) fn parse(keys: &str) -> Vec<KeyEvent> {
    let mut events = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|after| after.split_once('>'));
        if let Some((name, after)) = named.filter(|(name, _)| name.len() > 1) {
            let (code, modifiers) = match name {
                "esc" => (KeyCode::Esc, KeyModifiers::NONE),
                "enter" => (KeyCode::Enter, KeyModifiers::NONE),
                "tab" => (KeyCode::Tab, KeyModifiers::NONE),
                "backtab" => (KeyCode::BackTab, KeyModifiers::SHIFT),
                "back" => (KeyCode::Backspace, KeyModifiers::NONE),
                "home" => (KeyCode::Home, KeyModifiers::NONE),
                "end" => (KeyCode::End, KeyModifiers::NONE),
                "up" => (KeyCode::Up, KeyModifiers::NONE),
                "down" => (KeyCode::Down, KeyModifiers::NONE),
                "left" => (KeyCode::Left, KeyModifiers::NONE),
                "right" => (KeyCode::Right, KeyModifiers::NONE),
                other => {
                    let c = other.strip_prefix("c-").and_then(|c| c.chars().next());
                    (KeyCode::Char(c.expect("a name of a key")), KeyModifiers::CONTROL)
                }
            };
            events.push(KeyEvent::new(code, modifiers));
            rest = after;
        } else {
            events.push(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
            rest = &rest[c.len_utf8()..];
        }
    }
    events
}
