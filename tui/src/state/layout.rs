//! The layout of the screen; drawing and the targets of clicks follow from it.
//!
//! The timelines and the pane share what the fixed lines leave. The pane gets the lines that its
//! content needs, but never so many that rows which need them have less than half; the rows take
//! all the rest, and become taller.

use super::Row;
use ratatui::layout::Rect;
use streamsan_model::RangeSpan;

/// The tallest row. Taller ones say no more.
const TALLEST: u16 = 18;
/// Lines of a row of a host thread, whose calls are rarely dense.
const HOST_ROW: u16 = 3;
/// Lines of a row in which a graph is easily read: a gap for edges, and two for operations.
const COMFORTABLE: usize = 3;
/// The fewest lines of the timelines beside a pane.
const FEWEST: u16 = 3;

/// What wants room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Rows, headlines included.
    pub rows: usize,
    /// Lines of the pane's content.
    pub pane: usize,
    /// Lines of the pane that the user has chosen, its headline included.
    pub chosen: Option<u16>,
    /// Whether the pane has the whole screen.
    pub expanded: bool,
}

/// Areas of the screen. An area for which there is no room is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Areas {
    pub title: Rect,
    /// The whole trace.
    pub minimap: Rect,
    /// Positions.
    pub ruler: Rect,
    /// Columns with findings.
    pub races: Rect,
    /// The timelines.
    pub rows: Rect,
    /// What letters and colours mean.
    pub legend: Rect,
    /// The pane, its headline included.
    pub pane: Rect,
    /// The last line.
    pub status: Rect,
    /// Columns of the names at the left.
    pub label: u16,
}

impl Areas {
    /// Areas of a screen.
    pub fn of(width: u16, height: u16, wants: Wants) -> Self {
        let label = match width {
            0..=29 => width / 4,
            30..=47 => 12,
            // `stream "copy"` is whole.
            48..=59 => 16,
            60..=79 => 20,
            // `stream 0x7f95da139460` is whole.
            80..=119 => 23,
            120..=159 => 28,
            _ => 36,
        };
        let (minimap, ruler, races, legend) = match height {
            _ if wants.expanded => (0, 0, 0, u16::from(height > 8)),
            0..=5 => (0, 0, 1, 0),
            6..=8 => (0, 1, 1, 0),
            9..=39 => (1, 1, 1, 1),
            _ => (2, 1, 1, 1),
        };
        let shared = height.saturating_sub(2 + minimap + ruler + races + legend);
        let pane = if wants.expanded { shared } else { Self::pane(height, shared, wants) };
        let mut y = 0;
        let mut take = |lines: u16| {
            let lines = lines.min(height.saturating_sub(y));
            let area = Rect { x: 0, y, width, height: lines };
            y += lines;
            area
        };
        Self {
            title: take(1),
            minimap: take(minimap),
            ruler: take(ruler),
            races: take(races),
            rows: take(shared.saturating_sub(pane)),
            legend: take(legend),
            pane: take(pane),
            status: take(1),
            label,
        }
    }

    /// Lines of the pane.
    fn pane(height: u16, shared: u16, wants: Wants) -> u16 {
        if height < 12 {
            return 0;
        }
        let most = shared.saturating_sub(FEWEST);
        if let Some(chosen) = wants.chosen {
            return chosen.clamp(2, most.max(2));
        }
        let rows = wants.rows.saturating_mul(COMFORTABLE).min(usize::from(shared / 2));
        let rows = u16::try_from(rows).unwrap_or(shared).max(FEWEST);
        let pane = u16::try_from(wants.pane.saturating_add(1)).unwrap_or(u16::MAX);
        pane.clamp(3, shared.saturating_sub(rows).max(3))
    }

    /// Columns of the timelines.
    pub fn columns(&self) -> u32 {
        u32::from(self.title.width.saturating_sub(self.label)).max(1)
    }
}

/// A row where it stands on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowOnScreen {
    pub row: Row,
    /// Whether the row is kept at the top.
    pub pinned: bool,
    /// Its first line, from the top of the timelines.
    pub top: u16,
    /// Its lines.
    pub height: u16,
}

impl RowOnScreen {
    /// The line of the letters: the last one.
    pub fn letters(&self) -> u16 {
        self.top + self.height - 1
    }

    /// The line that is kept free for edges: the first one, where there are several.
    pub fn gap(&self) -> Option<u16> {
        (self.height > 1 && self.row.lane().is_some()).then_some(self.top)
    }
}

/// What kind of row it is, for its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Headline,
    Host,
    Stream,
}

impl RowKind {
    const fn tallest(self) -> u16 {
        match self {
            Self::Headline => 1,
            Self::Host => HOST_ROW,
            Self::Stream => TALLEST,
        }
    }
}

/// How many depths of ranges stand above a row, on a screen of so many lines.
pub(super) const fn depths_of_ranges(height: u16) -> u32 {
    match height {
        0..=19 => 1,
        20..=31 => 2,
        _ => RangeSpan::DEPTHS,
    }
}

/// The heights of rows that share some lines, streams before host threads; a line each where there
/// are more rows than lines.
pub(super) fn heights(kinds: &[RowKind], lines: u16) -> Vec<u16> {
    let mut heights = vec![1; kinds.len()];
    let mut left = usize::from(lines).saturating_sub(kinds.len());
    for height in 2..=TALLEST {
        for kind in [RowKind::Stream, RowKind::Host] {
            for (row, _) in kinds.iter().enumerate().filter(|&(_, other)| *other == kind) {
                if left > 0 && height <= kind.tallest() {
                    heights[row] = height;
                    left -= 1;
                }
            }
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::{Areas, RowKind, TALLEST, Wants, heights};

    #[test]
    fn areas_fill_the_screen_and_do_not_overlap() {
        for width in [0, 1, 20, 80, 300] {
            for height in 0..80 {
                for (rows, pane) in [(0, 0), (1, 5), (7, 9), (200, 2), (3, 1000)] {
                    for expanded in [false, true] {
                        for chosen in [None, Some(0), Some(7), Some(999)] {
                            let wants = Wants { rows, pane, chosen, expanded };
                            let a = Areas::of(width, height, wants);
                            let lines = [
                                a.title, a.minimap, a.ruler, a.races, a.rows, a.legend, a.pane,
                                a.status,
                            ];
                            assert_eq!(lines.iter().map(|r| r.height).sum::<u16>(), height);
                            assert!(lines.is_sorted_by_key(|r| r.y));
                            assert!(lines.iter().all(|r| r.bottom() <= height));
                            assert!(height < 12 || expanded || a.rows.height > 2, "{height}");
                            assert!(height < 9 || a.legend.height == 1, "{height}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_pane_takes_what_it_needs_and_the_rows_the_rest() {
        let of = |rows, pane| {
            let areas = Areas::of(120, 40, Wants { rows, pane, ..Wants::default() });
            (areas.rows.height, areas.pane.height)
        };
        assert_eq!(of(5, 7), (25, 8));
        assert_eq!(of(5, 1), (30, 3));
        // A long list leaves the rows what they need, and many rows leave it half.
        assert_eq!(of(2, 500), (6, 27));
        assert_eq!(of(90, 500), (16, 17));
    }

    #[test]
    fn rows_share_all_lines() {
        use RowKind::{Headline, Host, Stream};
        assert_eq!(heights(&[Host, Stream, Stream], 10), [3, 4, 3]);
        assert_eq!(heights(&[Headline, Host, Stream], 4), [1, 1, 2]);
        assert_eq!(heights(&[Stream; 3], 2), [1, 1, 1]);
        assert_eq!(heights(&[Stream], 50), [TALLEST]);
    }
}
