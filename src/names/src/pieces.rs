//! A readable name, split at its brackets.

/// Depth of brackets beyond which a name is not split.
const DEEPEST: usize = 64;
/// The operators that may follow the word `operator` and are no brackets, longest first.
const OPERATORS: [&str; 13] =
    ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"];

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    List(List),
}

/// The text between two brackets, split at the commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) kind: Kind,
    pub(crate) items: Vec<Vec<Piece>>,
    /// Number of items that are printed; dots stand for the rest.
    pub(crate) shown: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Angle,
    Round,
    Curly,
    Square,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Angle, Self::Round, Self::Curly, Self::Square];

    pub(crate) const fn brackets(self) -> (char, char) {
        match self {
            Self::Angle => ('<', '>'),
            Self::Round => ('(', ')'),
            Self::Curly => ('{', '}'),
            Self::Square => ('[', ']'),
        }
    }
}

impl Piece {
    pub(crate) fn is(&self, wanted: Kind) -> bool {
        matches!(self, Self::List(List { kind, .. }) if *kind == wanted)
    }
}

/// Brackets that are open.
#[derive(Debug, Default)]
struct Open {
    kind: Kind,
    items: Vec<Vec<Piece>>,
    item: Vec<Piece>,
}

fn add_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(last)) => last.push_str(text),
        _ => pieces.push(Piece::Text(text.to_owned())),
    }
}

/// The pieces without blanks at both ends.
fn trimmed(mut pieces: Vec<Piece>) -> Vec<Piece> {
    if let Some(Piece::Text(text)) = pieces.first_mut() {
        *text = text.trim_start().to_owned();
    }
    if let Some(Piece::Text(text)) = pieces.last_mut() {
        *text = text.trim_end().to_owned();
    }
    pieces.retain(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
    pieces
}

/// Splits a name; `None` where its brackets do not match.
pub(crate) fn parse(name: &str) -> Option<Vec<Piece>> {
    // The outermost level is that of the whole name, which no bracket closes.
    let mut levels = vec![Open::default()];
    let mut rest = name;
    // The last characters read, with and without blanks: they tell a bracket from an operator.
    let (mut before, mut sign) = (' ', ' ');
    while let Some(c) = rest.chars().next() {
        let depth = levels.len();
        let level = levels.last_mut()?;
        if !before.is_alphanumeric()
            && before != '_'
            && let Some(after) = rest.strip_prefix("operator")
            && let Some(which) = OPERATORS.iter().find(|which| after.starts_with(**which))
        {
            let (operator, after) = rest.split_at("operator".len() + which.len());
            add_text(&mut level.item, operator);
            (rest, before, sign) = (after, 'r', 'r');
            continue;
        }
        let opens = Kind::ALL.into_iter().find(|kind| kind.brackets().0 == c);
        // `(a)<(b)` compares.
        let opens = opens.filter(|kind| *kind != Kind::Angle || sign != ')');
        let is_arrow = c == '>' && before == '-';
        let closes = level.kind.brackets().1 == c && depth > 1 && !is_arrow;
        if let Some(kind) = opens {
            if depth > DEEPEST {
                return None;
            }
            levels.push(Open { kind, ..Open::default() });
        } else if closes {
            let Open { kind, mut items, item } = levels.pop()?;
            if !item.is_empty() || !items.is_empty() {
                items.push(trimmed(item));
            }
            let shown = items.len();
            levels.last_mut()?.item.push(Piece::List(List { kind, items, shown }));
        } else if matches!(c, ')' | '}' | ']') {
            return None;
        } else if c == ',' && depth > 1 {
            let item = std::mem::take(&mut level.item);
            level.items.push(trimmed(item));
        } else {
            add_text(&mut level.item, c.encode_utf8(&mut [0; 4]));
        }
        rest = &rest[c.len_utf8()..];
        before = c;
        if !c.is_whitespace() {
            sign = c;
        }
    }
    let [Open { item, .. }] = <[Open; 1]>::try_from(levels).ok()?;
    Some(item)
}

/// Splits pieces at `::`, outside of brackets.
pub(crate) fn components(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut components = vec![Vec::new()];
    for piece in pieces {
        match piece {
            Piece::List(_) => components.last_mut().expect("there is one").push(piece.clone()),
            Piece::Text(text) => {
                for (index, part) in text.split("::").enumerate() {
                    if index > 0 {
                        components.push(Vec::new());
                    }
                    if !part.is_empty() {
                        let last = components.last_mut().expect("there is one");
                        last.push(Piece::Text(part.to_owned()));
                    }
                }
            }
        }
    }
    components
}

/// The text of pieces, with dots for the items that are left out.
pub(crate) fn render(pieces: &[Piece], text: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(part) => text.push_str(part),
            Piece::List(list) => {
                let (open, close) = list.kind.brackets();
                text.push(open);
                for (index, item) in list.items.iter().take(list.shown).enumerate() {
                    text.push_str(if index > 0 { ", " } else { "" });
                    render(item, text);
                }
                if list.shown < list.items.len() {
                    text.push_str(if list.shown > 0 { ", ..." } else { "..." });
                }
                text.push(close);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{parse, render};

    #[test]
    fn what_is_taken_apart_can_be_put_together() {
        for name in [
            "f",
            "a::f<b<c>, d(e, f)>::{lambda(int)#1}",
            "a::operator<<b>",
            "a::operator()<int>(b) const",
            "a::operator-><int>",
            "f<(1)<(2), 3>",
            "f<decltype (a->b)>",
            "f<>",
            "<a as b>::c",
            "operators<int>",
        ] {
            let mut text = String::new();
            render(&parse(name).unwrap_or_else(|| panic!("{name}")), &mut text);
            assert_eq!(text, name);
        }
    }

    #[test]
    fn brackets_that_do_not_match_are_refused() {
        for name in ["f<", "f<(>)", "f)", "f(]", &"<".repeat(100)] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
