//! The layout of the screen; drawing and the targets of clicks follow from it.

use ratatui::layout::Rect;

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
    /// The pane, its headline included.
    pub pane: Rect,
    /// The last line.
    pub status: Rect,
    /// Columns of the names at the left.
    pub label: u16,
}

impl Areas {
    /// Areas of a screen.
    pub fn of(width: u16, height: u16, expanded: bool) -> Self {
        let pane = match height {
            _ if expanded => height.saturating_sub(2),
            0..=11 => 0,
            12..=17 => 4,
            18..=31 => 9,
            _ => (height / 3).min(16),
        };
        let label = match width {
            0..=29 => width / 4,
            30..=59 => 12,
            60..=119 => 20,
            _ => 26,
        };
        let mut y = 0;
        let mut take = |lines: u16| {
            let lines = lines.min(height.saturating_sub(y));
            let area = Rect { x: 0, y, width, height: lines };
            y += lines;
            area
        };
        let title = take(1);
        let (minimap, ruler, races) = match height {
            _ if expanded => (take(0), take(0), take(0)),
            0..=5 => (take(0), take(0), take(1)),
            6..=8 => (take(0), take(1), take(1)),
            _ => (take(1), take(1), take(1)),
        };
        let fixed = 1 + minimap.height + ruler.height + races.height + pane + 1;
        let rows = take(height.saturating_sub(fixed));
        Self { title, minimap, ruler, races, rows, pane: take(pane), status: take(1), label }
    }

    /// Columns of the timelines.
    pub fn columns(&self) -> u32 {
        u32::from(self.title.width.saturating_sub(self.label)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Areas;

    #[test]
    fn areas_fill_the_screen_and_do_not_overlap() {
        for width in [0, 1, 20, 80, 300] {
            for height in 0..80 {
                for expanded in [false, true] {
                    let a = Areas::of(width, height, expanded);
                    let lines = [a.title, a.minimap, a.ruler, a.races, a.rows, a.pane, a.status];
                    assert_eq!(lines.iter().map(|r| r.height).sum::<u16>(), height);
                    assert!(lines.is_sorted_by_key(|r| r.y));
                    assert!(lines.iter().all(|r| r.bottom() <= height));
                    assert!(height < 12 || expanded || a.rows.height > 2, "{height}");
                }
            }
        }
    }
}
