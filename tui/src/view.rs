//! The state as cells. Pure: what is drawn depends on the state alone, and costs what the screen
//! holds.

use crate::{Pane, State, TABLE};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Widget, Wrap};
use streamsan_model::{Bucket, Finding, LaneId, OpGroup, Operation};

/// Whether colours are used. Every mark is also told by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// Colours that stay apart for colour-blind eyes (Okabe and Ito's set).
    Colour,
    /// Letters only.
    Plain,
}

/// Columns of a row's name.
const LABEL: u16 = 22;
/// Rows of the details below the timeline.
const DETAILS: u16 = 9;

/// Columns that the timeline has on a screen of this width.
pub(crate) fn timeline_columns(width: u16) -> u32 {
    u32::from(width.saturating_sub(LABEL))
}

/// Draws the state.
pub fn render(state: &State, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    if state.pane == Pane::Help {
        return help(area, buffer);
    }
    let [title, axis, rows, details, status] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(DETAILS),
        Constraint::Length(1),
    ])
    .areas(area);
    Paragraph::new(headline(state)).render(title, buffer);
    draw_axis(state, palette, axis, buffer);
    draw_rows(state, palette, rows, buffer);
    draw_details(state, details, buffer);
    Paragraph::new(
        "w/s zoom  a/d move  h/l operation  j/k row  r finding  Tab other side  ? keys  q",
    )
    .style(Style::new().add_modifier(Modifier::DIM))
    .render(status, buffer);
}

fn headline(state: &State) -> String {
    let operations: u64 = state.lanes.iter().map(|l| l.operations).sum();
    format!(
        "streamsan  {operations} operations  {} rows  {} findings  showing #{}..#{} in issue order",
        state.lanes.len(),
        state.findings.len(),
        state.window.first,
        state.window.end
    )
}

fn glyph(bucket: &Bucket) -> char {
    let letter = match bucket.group {
        OpGroup::Kernel => 'k',
        OpGroup::Copy => 'c',
        OpGroup::Memset => 'm',
        OpGroup::Host => 'h',
        OpGroup::Synchronisation => 's',
        OpGroup::Memory => 'a',
        OpGroup::Other => '.',
    };
    // A capital stands for several operations.
    if bucket.operations > 1 { letter.to_ascii_uppercase() } else { letter }
}

fn style(bucket: &Bucket, palette: Palette) -> Style {
    let base = if bucket.findings > 0 {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    } else {
        Style::new()
    };
    if palette == Palette::Plain {
        return base;
    }
    base.fg(match bucket.group {
        _ if bucket.findings > 0 => Color::Rgb(213, 94, 0),
        OpGroup::Kernel => Color::Rgb(86, 180, 233),
        OpGroup::Copy => Color::Rgb(0, 158, 115),
        OpGroup::Memset => Color::Rgb(240, 228, 66),
        OpGroup::Host => Color::Rgb(204, 121, 167),
        OpGroup::Synchronisation => Color::Rgb(230, 159, 0),
        OpGroup::Memory | OpGroup::Other => Color::Gray,
    })
}

fn cell_style(palette: Palette, colour: Color, modifier: Modifier) -> Style {
    let style = Style::new().add_modifier(modifier);
    if palette == Palette::Colour { style.fg(colour) } else { style }
}

/// The row of marks: every column in which some row has a finding.
fn draw_axis(state: &State, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    buffer.set_stringn(area.x, area.y, "findings", LABEL as usize, Style::new());
    for bucket in state.buckets.iter().filter(|b| b.findings > 0) {
        put(buffer, area, bucket.column, '!', cell_style(palette, Color::Red, Modifier::BOLD));
    }
}

fn put(buffer: &mut Buffer, area: Rect, column: u32, glyph: char, style: Style) {
    let Ok(column) = u16::try_from(column) else { return };
    let x = area.x.saturating_add(LABEL).saturating_add(column);
    if x < area.right() && area.height > 0 {
        buffer[(x, area.y)].set_char(glyph).set_style(style);
    }
}

fn draw_rows(state: &State, palette: Palette, area: Rect, buffer: &mut Buffer) {
    // The selected row stays in sight.
    let height = usize::from(area.height.max(1));
    let top = state.lane.saturating_sub(height.saturating_sub(1));
    for (line, (index, lane)) in
        (area.y..area.bottom()).zip(state.lanes.iter().enumerate().skip(top))
    {
        let row = Rect { y: line, height: 1, ..area };
        let modifier = if index == state.lane { Modifier::REVERSED } else { Modifier::empty() };
        let name = row_name(lane.id, lane.stream.as_ref());
        buffer.set_stringn(
            row.x,
            row.y,
            name,
            LABEL as usize - 1,
            Style::new().add_modifier(modifier),
        );
        for bucket in state.buckets.iter().filter(|b| b.lane == lane.id) {
            put(buffer, row, bucket.column, glyph(bucket), style(bucket, palette));
        }
        if index == state.lane
            && let Some(column) = cursor_column(state, area.width)
        {
            let x = row.x.saturating_add(LABEL).saturating_add(column);
            if x < row.right() {
                buffer[(x, row.y)].set_style(Style::new().add_modifier(Modifier::UNDERLINED));
            }
        }
    }
}

fn cursor_column(state: &State, width: u16) -> Option<u16> {
    let op = state.selection.as_ref()?;
    let columns = u64::from(timeline_columns(width));
    (op.g >= state.window.first && op.g < state.window.end).then_some(())?;
    let length = state.window.end.0 - state.window.first.0;
    u16::try_from(
        u128::from(op.g.0 - state.window.first.0) * u128::from(columns) / u128::from(length),
    )
    .ok()
}

fn row_name(id: LaneId, stream: Option<&streamsan_model::Stream>) -> String {
    match (id, stream) {
        (LaneId::Host(process), _) => format!("host, process {process}"),
        (LaneId::Stream(id), None) => format!("stream {id}"),
        (LaneId::Stream(id), Some(stream)) => match &stream.name {
            Some(name) => format!("{name} ({})", stream.kind.description()),
            None => format!("stream {id} {}", stream.kind.description()),
        },
    }
}

fn draw_details(state: &State, area: Rect, buffer: &mut Buffer) {
    let block = Block::new().borders(Borders::TOP).title("selected operation");
    let mut lines = Vec::new();
    if let Some(op) = &state.selection {
        lines.extend(operation_lines(op));
    }
    if let Some(finding) = state.finding.and_then(|i| state.findings.get(i)) {
        lines.push(finding_line(finding, state));
    }
    Paragraph::new(lines).block(block).wrap(Wrap { trim: false }).render(area, buffer);
}

fn operation_lines(op: &Operation) -> Vec<Line<'static>> {
    let mut head = format!("#{} {}", op.g, op.api);
    if let Some(stream) = op.action.stream() {
        head.push_str(&format!("  stream {stream}"));
    }
    head.push_str(&format!("  thread {}  result {}", op.thread, op.status.0));
    if let Some(time) = op.time {
        head.push_str(&format!("  {} ns in the driver", time.end_ns - time.start_ns));
    }
    let mut lines = vec![Line::from(head)];
    lines.extend(op.accesses.iter().take(3).map(|access| {
        Line::from(format!(
            "  {} {:?} of allocation {} ({})",
            access.mode.description(),
            access.extent.hull(),
            access.allocation,
            access.basis.description()
        ))
    }));
    if op.accesses.len() > 3 {
        lines.push(Line::from(format!("  and {} more accesses", op.accesses.len() - 3)));
    }
    lines
}

fn finding_line(finding: &Finding, state: &State) -> Line<'static> {
    let place = state.finding.map_or(0, |i| i + 1);
    Line::from(vec![
        Span::styled(
            format!("finding {place}/{} [{}] ", state.findings.len(), finding.class.description()),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Span::raw(format!(
            "{} {} id {}: #{} {} then #{} {}, {:?}",
            finding.severity.description(),
            finding.kind.description(),
            finding.fingerprint,
            finding.first.op,
            finding.first.kernel.as_deref().unwrap_or(&finding.first.api),
            finding.second.op,
            finding.second.kernel.as_deref().unwrap_or(&finding.second.api),
            finding.overlap
        )),
    ])
}

fn help(area: Rect, buffer: &mut Buffer) {
    let lines: Vec<Line<'_>> =
        TABLE.iter().map(|b| Line::from(format!("  {:<8} {}", b.shown, b.help))).collect();
    Paragraph::new(lines).block(Block::bordered().title("keys")).render(area, buffer);
}
