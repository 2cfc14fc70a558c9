//! The explanation of a finding.

use super::panes::{Text, plain};
use crate::State;

pub(super) fn lines(state: &State, width: usize) -> Vec<Text> {
    if state.current_finding().is_none() {
        return vec![plain("no race is selected; r goes to the next one")];
    }
    match &state.explanation {
        Some((place, text)) if Some(*place) == state.finding => {
            text.lines().flat_map(|line| wrap(line, width)).map(plain).collect()
        }
        _ => vec![plain("…")],
    }
}

/// A line cut at spaces so that it fits, its continuations indented like itself.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let room = width.saturating_sub(1).max(indent + 20);
    let mut lines = Vec::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > room {
        let limit = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let cut = rest[..limit].rfind(' ').filter(|&cut| cut > indent + 8).unwrap_or(limit);
        let tail = format!("{}{}", " ".repeat(indent + 2), rest[cut..].trim_start());
        rest.truncate(cut);
        lines.push(std::mem::replace(&mut rest, tail));
        if lines.len() > 2000 {
            break;
        }
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_fit_and_lose_nothing() {
        let text = "    one two three four five six seven eight nine ten eleven twelve thirteen";
        for width in [10, 30, 40, 200] {
            let lines = wrap(text, width);
            assert!(lines.iter().all(|line| line.len() <= width.max(26)), "{lines:?}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(lines.iter().flat_map(|line| words(line)).collect::<Vec<_>>(), words(text));
        }
    }
}
