//! Typed text: searches, filters, names of commands.

use super::{Pane, State};
use crate::keys::{Binding, TABLE};
use crate::query::Target;
use crate::traces::OpRef;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use streamsan_model::OpSeq;

/// The purpose of typed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A search.
    Search,
    /// A filter of the rows.
    Rows,
    /// A filter of the findings.
    Races,
    /// The name of a command.
    Palette,
}

impl InputKind {
    /// What can be typed, while nothing is.
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Rows => "words of rows' names, stream:, kernel:, file:, function:, allocation:",
            Self::Search | Self::Races | Self::Palette => "",
        }
    }

    /// The prompt before the text.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Search => "search: ",
            Self::Rows => "filter: ",
            Self::Races => "races with: ",
            Self::Palette => ":",
        }
    }
}

/// Longest text; longer ones fit no screen.
const LONGEST: usize = 200;

/// A line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The purpose of the text.
    pub kind: InputKind,
    /// The text so far.
    pub text: String,
    /// The selected command of the palette.
    pub choice: usize,
}

impl Input {
    pub(super) fn new(kind: InputKind) -> Self {
        Self { kind, text: String::new(), choice: 0 }
    }

    pub(super) fn with(kind: InputKind, words: &[String]) -> Self {
        let divider = if kind == InputKind::Rows { ", " } else { " " };
        Self { text: words.join(divider), ..Self::new(kind) }
    }

    /// Commands of the palette that match: the name's letters occur in order, those whose names
    /// begin with the text first.
    pub fn matches(&self) -> Vec<&'static Binding> {
        let text = self.text.to_lowercase();
        let in_order = |binding: &&Binding| {
            let mut letters = binding.name.chars();
            text.chars().all(|c| letters.any(|letter| letter == c))
                || binding.help.to_lowercase().contains(&text)
        };
        let mut found: Vec<_> = TABLE.iter().filter(in_order).collect();
        found.sort_by_key(|binding| {
            (binding.name != text, !binding.name.starts_with(&text), !binding.name.contains(&text))
        });
        found
    }
}

impl State {
    /// A key while a line is typed.
    pub(super) fn type_key(&mut self, event: KeyEvent) {
        let Some(input) = &mut self.input else { return };
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Esc => self.input = None,
            KeyCode::Enter => self.typed(),
            KeyCode::Backspace if input.text.pop().is_none() => self.input = None,
            KeyCode::Backspace => input.choice = 0,
            KeyCode::Char('u') if control => input.text.clear(),
            KeyCode::Char('n') if control => input.choice += 1,
            KeyCode::Char('p') if control => input.choice = input.choice.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => input.choice += 1,
            KeyCode::Up | KeyCode::BackTab => input.choice = input.choice.saturating_sub(1),
            KeyCode::Char(c) if !control && input.text.len() < LONGEST => {
                input.text.push(c);
                input.choice = 0;
            }
            _ => {}
        }
        if let Some(input) = &mut self.input
            && input.kind == InputKind::Palette
        {
            input.choice = input.choice.min(input.matches().len().saturating_sub(1));
        }
    }

    /// An operation of the trace in focus, by its number.
    fn op_in_focus(&self, g: u64) -> OpRef {
        OpRef { trace: self.trace_in_focus(), g: OpSeq(g) }
    }

    /// Enter was pressed.
    fn typed(&mut self) {
        let Some(input) = self.input.take() else { return };
        let number = input.text.trim().trim_start_matches('#').replace(',', "").parse().ok();
        match input.kind {
            InputKind::Search => match number.filter(|_| input.text.trim().starts_with('#')) {
                Some(g) => self.select(Target::Op(self.op_in_focus(g))),
                None if input.text.is_empty() => self.search_next(true),
                None => {
                    self.search = Some(input.text);
                    self.search_next(true);
                }
            },
            InputKind::Rows => self.set_filter(&input.text),
            InputKind::Races => {
                self.list.set_words(&input.text);
                self.update_list();
                self.show_pane(Pane::Races);
            }
            InputKind::Palette => match (number, input.matches().get(input.choice)) {
                (Some(g), _) => self.select(Target::Op(self.op_in_focus(g))),
                (None, Some(binding)) => self.apply(binding.command),
                (None, None) => self.tell(format!("no command {:?}", input.text)),
            },
        }
    }
}
