//! What the loop shows: one state, or two beside each other.

use crate::query::{Answer, Numbered, Request};
use crate::state::Effect;
use crate::{Pair, State, Theme, render, render_pair};
use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

#[derive(Debug)]
pub(crate) enum Scene {
    One(Box<State>),
    Two(Box<Pair>),
}

impl Scene {
    /// What keys go to.
    pub(crate) fn front(&self) -> &State {
        match self {
            Self::One(state) => state,
            Self::Two(pair) => pair.front(),
        }
    }

    pub(crate) fn front_mut(&mut self) -> &mut State {
        match self {
            Self::One(state) => state,
            Self::Two(pair) => pair.front_mut(),
        }
    }

    /// The questions, each with the side whose traces it is for.
    pub(crate) fn take_requests(&mut self) -> Vec<(usize, Numbered<Request>)> {
        match self {
            Self::One(state) => state.take_requests().into_iter().map(|r| (0, r)).collect(),
            Self::Two(pair) => {
                let of = |side| pair.take_requests(side).into_iter().map(move |r| (side, r));
                [0, 1].map(of).into_iter().flatten().collect()
            }
        }
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        self.front_mut().take_effects()
    }

    pub(crate) fn receive(&mut self, side: usize, answer: Numbered<Answer>) {
        match self {
            Self::One(state) => state.receive(answer),
            Self::Two(pair) => pair.receive(side, answer),
        }
    }

    pub(crate) fn key(&mut self, event: KeyEvent) {
        match self {
            Self::One(state) => state.key(event),
            Self::Two(pair) => pair.key(event),
        }
    }

    pub(crate) fn mouse(&mut self, event: MouseEvent) {
        match self {
            Self::One(state) => state.mouse(event),
            Self::Two(pair) => pair.mouse(event),
        }
    }

    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        match self {
            Self::One(state) => {
                state.resize(width, height);
                state.ask_for_screen();
            }
            Self::Two(pair) => pair.resize(width, height),
        }
    }

    pub(crate) fn quit(&self) -> bool {
        match self {
            Self::One(state) => state.quit,
            Self::Two(pair) => pair.quit(),
        }
    }

    pub(crate) fn draw(&self, theme: Theme, area: Rect, buffer: &mut Buffer) {
        // The help is as wide as the screen.
        match self {
            Self::One(state) => render(state, theme, area, buffer),
            Self::Two(pair) => render_pair(pair, theme, area, buffer),
        }
    }
}
