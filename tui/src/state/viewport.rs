//! The visible part of an axis.

use streamsan_model::{Axis, Grid, Span};

/// Most columns of one position, as a power of two: room for names.
const MOST_DETAIL: i8 = -5;

/// A window over an axis. A column is a power of two of positions wide, and begins at a multiple of
/// it, so that nothing flickers when the window moves.
///
/// Invariant: where the trace is wider than the screen, no column lies outside of the trace; where
/// it is not, the whole of it is on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    pub axis: Axis,
    /// The positions of the axis.
    pub span: Span,
    /// First position shown.
    pub start: u64,
    /// Binary logarithm of the positions in a column.
    pub scale: i8,
    /// Columns on the screen.
    pub columns: u32,
}

impl Viewport {
    /// The whole of an axis.
    pub fn whole(axis: Axis, span: Span, columns: u32) -> Self {
        let mut viewport = Self { axis, span, start: 0, scale: 0, columns: columns.max(1) };
        viewport.scale = viewport.widest();
        viewport.place(u128::from(span.start));
        viewport
    }

    /// The window as queries take it.
    pub fn grid(&self) -> Grid {
        Grid { axis: self.axis, start: self.start, scale: self.scale, columns: self.columns }
    }

    /// Positions in `columns` columns; at least 1 for the widths that movements take.
    fn positions(&self, columns: u64) -> u128 {
        let shift = u32::from(self.scale.unsigned_abs());
        if self.scale >= 0 { u128::from(columns) << shift } else { u128::from(columns) >> shift }
    }

    /// The scale at which the whole axis fits on the screen.
    fn widest(&self) -> i8 {
        let mut scale = MOST_DETAIL;
        while scale < 62 && !(Self { scale, ..*self }).fits() {
            scale += 1;
        }
        scale
    }

    /// Whether the whole axis fits on the screen at this scale.
    fn fits(&self) -> bool {
        let first = self.align(u128::from(self.span.start));
        u128::from(self.span.end) <= first + self.positions(self.columns.into())
    }

    fn align(&self, position: u128) -> u128 {
        if self.scale > 0 { position >> self.scale << self.scale } else { position }
    }

    /// Begins at a position, as far as the trace reaches.
    fn place(&mut self, start: u128) {
        let first = self.align(u128::from(self.span.start));
        let width = self.positions(self.columns.into()).max(1);
        let column = self.positions(1).max(1);
        let end = u128::from(self.span.end).div_ceil(column) * column;
        let last = end.saturating_sub(width).max(first);
        let start = self.align(start.clamp(first, last));
        self.start = u64::try_from(start).unwrap_or(u64::MAX);
    }

    /// Zooms by powers of two, `steps` > 0 further in, keeping a position in its column.
    pub fn zoom(&mut self, steps: i8, keep: u64) {
        let widest = self.widest();
        let scale = self.scale.saturating_sub(steps).clamp(MOST_DETAIL.min(widest), widest);
        let column = self.grid().column(keep).unwrap_or(self.columns / 2);
        self.scale = scale;
        self.hold(keep, column);
    }

    /// Whether the whole axis is shown.
    pub fn is_whole(&self) -> bool {
        self.scale >= self.widest()
    }

    /// Zooms in as far as another axis is, around a position; without one, around the same part of
    /// the axis.
    pub fn zoom_as(&mut self, other: &Self, keep: Option<u64>) {
        let part = u128::from(other.middle().saturating_sub(other.span.start));
        let same = part * u128::from(self.span.len()) / u128::from(other.span.len().max(1));
        let same = self.span.start.saturating_add(u64::try_from(same).unwrap_or(u64::MAX));
        let same = same.min(self.span.end.saturating_sub(1));
        self.zoom(other.widest().saturating_sub(other.scale), keep.unwrap_or(same));
    }

    /// Shows a position in a column, as far as the trace reaches.
    pub fn hold(&mut self, position: u64, column: u32) {
        let before = self.positions(column.into());
        self.place(self.align(position.into()).saturating_sub(before));
    }

    /// Moves by columns.
    pub fn pan(&mut self, columns: i64) {
        let by = self.positions(columns.unsigned_abs()).max(1);
        let start = u128::from(self.start);
        self.place(if columns < 0 { start.saturating_sub(by) } else { start + by });
    }

    /// Shows a position; nothing moves if it is on the screen.
    pub fn reveal(&mut self, position: u64) {
        if self.grid().column(position).is_none() {
            self.hold(position, self.columns / 2);
        }
    }

    /// Frames positions with an eighth of the screen left on each side.
    pub fn frame(&mut self, first: u64, last: u64) {
        let widest = self.widest();
        let room = self.columns.saturating_sub(self.columns / 4).max(1);
        self.scale = MOST_DETAIL.min(widest);
        let distance = u128::from(last.saturating_sub(first)) + 1;
        while self.scale < widest && self.positions(room.into()) < distance {
            self.scale += 1;
        }
        loop {
            let width = u128::from(self.columns);
            let shift = u32::from(self.scale.unsigned_abs());
            let used = if self.scale >= 0 { distance >> shift } else { distance << shift };
            let margin = (width.saturating_sub(used) / 2).min(width / 2);
            self.hold(first, u32::try_from(margin).unwrap_or(0));
            // Columns begin at multiples of their width, so that the last one may not fit.
            if self.grid().column(last).is_some() || self.scale >= widest {
                return;
            }
            self.scale += 1;
        }
    }

    /// More of the axis is known. `follow`: the end stays on the screen, and the whole stays the
    /// whole.
    pub fn grow(&mut self, span: Span, follow: bool) {
        let whole = self.scale >= self.widest();
        self.span = span;
        if follow && whole {
            *self = Self::whole(self.axis, span, self.columns);
        } else if follow {
            self.to_end();
        } else {
            self.scale = self.scale.min(self.widest());
            self.place(self.start.into());
        }
    }

    /// Shows the end.
    pub fn to_end(&mut self) {
        self.place(u128::from(u64::MAX));
    }

    /// Whether the last position is on the screen.
    pub fn shows_end(&self) -> bool {
        self.span.is_empty() || self.grid().column(self.span.end - 1).is_some()
    }

    /// Another width of the screen.
    pub fn resize(&mut self, columns: u32) {
        let whole = self.scale >= self.widest();
        self.columns = columns.max(1);
        if whole || self.scale > self.widest() {
            self.scale = self.widest();
        }
        self.place(self.start.into());
    }

    /// The position in the middle of the screen.
    pub fn middle(&self) -> u64 {
        self.grid().position(self.columns / 2).min(self.span.end.saturating_sub(1))
    }

    /// The part of the axis that is shown.
    pub fn shown(&self) -> Span {
        let span = self.grid().span();
        Span { start: span.start.max(self.span.start), end: span.end.min(self.span.end) }
    }

    /// Whether the viewport keeps its invariant.
    pub fn is_inside(&self) -> bool {
        let span = self.grid().span();
        let overlaps = span.start < self.span.end && span.end > self.span.start;
        let column = u64::try_from(self.positions(1).max(1)).unwrap_or(u64::MAX);
        let before = self.span.start.saturating_sub(span.start);
        let behind = span.end.saturating_sub(self.span.end);
        // A part of a position that is wider than a column may be on the screen.
        let part = u64::from(self.scale < 0);
        overlaps && before < column && (behind < column + part || self.fits())
    }
}

#[cfg(test)]
mod tests {
    use super::Viewport;
    use proptest::prelude::*;
    use streamsan_model::{Axis, Span};

    #[derive(Clone, Debug)]
    enum Move {
        Zoom(i8, u64),
        ZoomAs(i8, u64),
        Pan(i64),
        Reveal(u64),
        Frame(u64, u64),
        Resize(u32),
        Grow(u64, bool),
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            (-3i8..4, any::<u64>()).prop_map(|(by, at)| Move::Zoom(by, at)),
            (0i8..9, any::<u64>()).prop_map(|(by, at)| Move::ZoomAs(by, at)),
            (-400i64..400).prop_map(Move::Pan),
            any::<u64>().prop_map(Move::Reveal),
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| Move::Frame(a, b)),
            (0u32..300).prop_map(Move::Resize),
            (0u64..1 << 41, any::<bool>()).prop_map(|(by, follow)| Move::Grow(by, follow)),
        ]
    }

    proptest! {
        #[test]
        fn never_leaves_the_trace(
            start in 0u64..1 << 40,
            length in 1u64..1 << 40,
            small in any::<bool>(),
            columns in 1u32..300,
            moves in prop::collection::vec(moves(), 1..40),
        ) {
            let length = if small { length % 50 + 1 } else { length };
            let span = Span { start, end: start + length };
            let inside = |at: u64| start + at % length;
            let mut view = Viewport::whole(Axis::Time, span, columns);
            prop_assert!(view.is_inside(), "{:?}", view);
            for step in moves {
                match step {
                    Move::Zoom(by, at) => view.zoom(by, inside(at)),
                    Move::Pan(by) => view.pan(by),
                    Move::ZoomAs(by, at) => {
                        let span = Span { start: 7, end: 7 + (1 << 20) };
                        let mut other = Viewport::whole(Axis::Issue, span, columns);
                        other.zoom(by, 7 + at % (1 << 20));
                        view.zoom_as(&other, (by % 2 == 0).then(|| inside(at)));
                    }
                    Move::Reveal(at) => {
                        view.reveal(inside(at));
                        prop_assert!(view.grid().column(inside(at)).is_some(), "{:?}", view);
                    }
                    Move::Frame(a, b) => {
                        let (a, b) = (inside(a).min(inside(b)), inside(a).max(inside(b)));
                        view.frame(a, b);
                        prop_assert!(view.grid().column(a).is_some(), "{:?} {} {}", view, a, b);
                        prop_assert!(view.grid().column(b).is_some(), "{:?} {} {}", view, a, b);
                    }
                    Move::Resize(columns) => view.resize(columns),
                    Move::Grow(by, follow) => {
                        let shown = view.shown();
                        let end = view.span.end + if small { by % 9 } else { by };
                        view.grow(Span { start, end }, follow);
                        if follow {
                            prop_assert!(view.shows_end(), "{:?}", view);
                        } else {
                            prop_assert!(view.grid().column(shown.start).is_some(), "{:?}", view);
                        }
                    }
                }
                prop_assert!(view.is_inside(), "{:?}", view);
            }
        }

        #[test]
        fn zooming_in_and_out_again_is_nothing(length in 1u64 << 20..1 << 40, at in any::<u64>()) {
            let span = Span { start: 0, end: length };
            let whole = Viewport::whole(Axis::Issue, span, 120);
            let mut view = whole;
            view.zoom(3, at % length);
            prop_assert_eq!(view.scale, whole.scale - 3);
            view.zoom(-3, at % length);
            prop_assert_eq!(view, whole);
        }
    }
}
