//! The loop: a key, a command, a frame.

use crate::view::timeline_columns;
use crate::{Palette, State, command_for, render};
use crossterm::event::{self, Event, KeyEventKind};
use std::io;
use streamsan_model::TraceQuery;

/// Shows a trace until the user leaves. The terminal is restored also on a panic.
pub fn run(query: &dyn TraceQuery, palette: Palette) -> io::Result<()> {
    let mut state = State::open(query).map_err(io::Error::other)?;
    let mut terminal = ratatui::try_init()?;
    let mut loaded = None;
    let result = (|| {
        while !state.quit {
            let columns = timeline_columns(terminal.size()?.width);
            // Most keys move the selection alone; a window of millions of operations takes time.
            if loaded != Some((state.window, columns)) {
                state.load(query, columns).map_err(io::Error::other)?;
                loaded = Some((state.window, columns));
            }
            terminal.draw(|frame| render(&state, palette, frame.area(), frame.buffer_mut()))?;
            if let Event::Key(key) = event::read()?
                && key.kind != KeyEventKind::Release
                && let Some(command) = command_for(key)
            {
                state.apply(command, query).map_err(io::Error::other)?;
            }
        }
        Ok(())
    })();
    ratatui::restore();
    result
}
