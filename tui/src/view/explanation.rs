//! The explanation of a finding, in the report's words and colours.

use super::styled::{Text, plain, report, without_colours};
use crate::State;

pub(super) fn lines(state: &State, width: usize) -> Vec<Text> {
    if state.current_finding().is_none() {
        return vec![plain("no race is selected; r goes to the next one")];
    }
    match &state.explanation {
        Some((place, text)) if Some(*place) == state.finding => report(text, width),
        _ => vec![plain("…")],
    }
}

/// The words for the clipboard.
pub(super) fn copied(state: &State) -> String {
    state.explanation.as_ref().map(|(_, text)| without_colours(text)).unwrap_or_default()
}
