//! A race as a drawing: a row a stream, the operations around the race from left to right, and the
//! edge that is missing. Distances mean nothing but issue order.

use super::around::{Around, Side, Step};
use crate::Report;
use crate::names::op;
use maud::{Markup, html};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;
use streamsan_model::{Finding, LaneId, OpGroup, Severity, Tier};

/// Height of a row, and of the room above the first one.
const ROW: i32 = 62;
const TOP: i32 = 34;
/// Height of a box.
const BOX: i32 = 24;
/// Room between two boxes.
const GAP: i32 = 22;
/// Widths of a character of a label and of a number above a box, in tenths.
const CHARACTER: i32 = 67;
const DIGIT: i32 = 55;

/// The letter of a group, which is its class in the style sheet too.
pub(super) const fn letter(group: OpGroup) -> &'static str {
    match group {
        OpGroup::Kernel => "k",
        OpGroup::Copy => "c",
        OpGroup::Upload => "u",
        OpGroup::Download => "d",
        OpGroup::Memset => "m",
        OpGroup::Host => "h",
        OpGroup::Synchronisation => "s",
        OpGroup::Memory => "a",
        OpGroup::Other => "o",
    }
}

/// A box of the drawing.
#[derive(Clone, Copy, Debug)]
struct Placed {
    x: i32,
    y: i32,
    width: i32,
    /// Where edges begin and end, from its left side: beside the number above it.
    edge: i32,
}

impl Placed {
    fn middle(&self) -> i32 {
        self.x + self.width / 2
    }

    fn edge(&self) -> i32 {
        self.x + self.edge
    }
}

fn width(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap_or(0) * CHARACTER / 10
}

/// The name of a row.
pub(super) fn lane_name(report: &Report<'_>, lane: LaneId) -> String {
    match lane {
        LaneId::Stream(stream) => report.stream(stream),
        LaneId::Host(thread) => match report.input.entities.thread(thread) {
            Some(found) => format!("host thread {}", found.tid),
            None => format!("host thread {thread}"),
        },
    }
}

/// The words at the edge that is missing.
fn missing(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Latent => "ordered by chance",
        Severity::Race | Severity::Lint => "no order",
    }
}

/// The drawing. Boxes of a kind are one path, and names stand in as few elements as can be: a page has
/// a thousand drawings.
pub(super) fn draw(report: &Report<'_>, finding: &Finding, around: &Around) -> Markup {
    let names: Vec<String> = around.lanes.iter().map(|&lane| lane_name(report, lane)).collect();
    let left = names.iter().map(|name| width(name)).max().unwrap_or(0).clamp(40, 260) + 16;
    let tops: Vec<i32> = (0..).map(|row| TOP + ROW * row).take(names.len()).collect();
    let top_of = |lane: LaneId| {
        let row = around.lanes.iter().position(|&own| own == lane);
        row.and_then(|row| tops.get(row)).copied().unwrap_or(TOP)
    };
    let mut x = left + GAP;
    let mut placed = Vec::new();
    for step in &around.steps {
        let number = op(step.g).len() as i32 * DIGIT / 10;
        let width = (width(&step.label) + 14).max(30).max(number + 16);
        let edge = (width / 2).max(number + 8);
        placed.push(Placed { x, y: top_of(step.lane), width, edge });
        x += width + GAP;
    }
    let (right, bottom) = (x, tops.last().unwrap_or(&TOP) + ROW);
    let rows: String =
        tops.iter().map(|top| format!("M{left} {}H{right}", top + BOX / 2)).collect();
    let boxes = |class: &str| -> String {
        let own = around.steps.iter().zip(&placed).filter(|(step, _)| step.class() == class);
        own.map(|(_, p)| format!("M{} {}h{}v{BOX}h-{}z", p.x, p.y, p.width, p.width)).collect()
    };
    let classes: BTreeSet<&str> = around.steps.iter().map(Step::class).collect();
    let edges = |tier: Tier| -> String {
        let own = around.edges.iter().filter(|edge| edge.tier == tier);
        let line = |from: &Placed, to: &Placed| connection(from, to, 6) + &tip(from, to, 6);
        own.map(|edge| line(&placed[edge.from], &placed[edge.to])).collect()
    };
    let side = |wanted| around.steps.iter().position(|step| step.side == Some(wanted));
    let sides = side(Side::First).zip(side(Side::Second));
    html! {
        svg.drawing role="img" width=(right) height=(bottom) {
            title { "Operations around the race" }
            desc { (description(&names, finding, around)) }
            path.row d=(rows) {}
            @for (name, top) in names.iter().zip(&tops) {
                text.name y=(top + BOX / 2 + 4) { (name) }
            }
            @for (tier, class) in [(Tier::Documented, "edge"), (Tier::Incidental, "edge chance")] {
                @let lines = edges(tier);
                @if !lines.is_empty() { path class=(class) d=(lines) {} }
            }
            @for class in classes { path class=(class) d=(boxes(class)) {} }
            @for (step, p) in around.steps.iter().zip(&placed) {
                @let class = step.side.map(|_| "w");
                text class=[class] x=(p.middle()) y=(p.y + BOX / 2 + 4) { (step.label) }
            }
            @for top in &tops {
                text.number y=(top - 4) {
                    @for (step, p) in around.steps.iter().zip(&placed).filter(|(_, p)| p.y == *top) {
                        tspan x=(p.x) { (op(step.g)) }
                    }
                }
            }
            @for (_, p) in around.steps.iter().zip(&placed).filter(|(step, _)| step.has_gap) {
                text.gap x=(p.x - GAP / 2) y=(p.y + BOX / 2 + 4) { "\u{22ef}" }
            }
            @if let Some((first, second)) = sides {
                path.missing d=(connection(&placed[first], &placed[second], 0)) {}
                path.tip d=(tip(&placed[first], &placed[second], 0)) {}
                @let (x, y) = beside(&placed[first], &placed[second]);
                text.none x=(x) y=(y) { (missing(finding)) }
            }
        }
    }
}

/// Places of the small drawing, whose boxes are always the same.
const NAMES: i32 = 190;
const SMALL: i32 = 150;
const PLACES: [Placed; 2] = [
    Placed { x: NAMES, y: TOP, width: SMALL, edge: SMALL / 2 },
    Placed { x: NAMES + SMALL + 2 * GAP, y: TOP + ROW, width: SMALL, edge: SMALL / 2 },
];

/// The two accesses in two rows, and nothing else: for a page with many findings. [`shared`] holds what
/// all of these drawings have in common. Nothing where one row holds both accesses.
pub(super) fn small(report: &Report<'_>, finding: &Finding) -> Option<Markup> {
    let sides = [&finding.first, &finding.second];
    if sides[0].stream == sides[1].stream {
        return None;
    }
    let numbers = ["(1)", "(2)"];
    Some(html! {
        svg.drawing.small role="img" {
            title { "The two accesses" }
            use href="#two" {}
            @for ((side, place), number) in sides.iter().zip(PLACES).zip(numbers) {
                @let y = place.y + BOX / 2 + 4;
                text.name y=(y) { (report.side(side.stream)) }
                text.w x=(place.middle()) y=(y) { (number) " " (op(side.op)) }
            }
            @let (x, y) = beside(&PLACES[0], &PLACES[1]);
            text.none x=(x) y=(y) { (missing(finding)) }
        }
    })
}

/// The common part of the small drawings.
pub(super) fn shared() -> Markup {
    let right = PLACES[1].x + SMALL + GAP;
    let row = |p: &Placed| format!("M{NAMES} {}H{right}", p.y + BOX / 2);
    let area = |p: &Placed| format!("M{} {}h{SMALL}v{BOX}h-{SMALL}z", p.x, p.y);
    html! {
        svg.shared width="0" height="0" aria-hidden="true" {
            g #two {
                path.row d=(PLACES.iter().map(row).collect::<String>()) {}
                path.side d=(PLACES.iter().map(area).collect::<String>()) {}
                path.missing d=(connection(&PLACES[0], &PLACES[1], 0)) {}
                path.tip d=(tip(&PLACES[0], &PLACES[1], 0)) {}
            }
        }
    }
}

impl Step {
    /// The class of its box.
    fn class(&self) -> &'static str {
        if self.side.is_some() { "side" } else { letter(self.group) }
    }
}

/// The line from one box to another. `aside` keeps edges off the line that is missing.
fn connection(from: &Placed, to: &Placed, aside: i32) -> String {
    let (x, to_x) = (from.edge() + aside, to.edge() - aside);
    let (y, to_y, bend) = ends(from, to);
    // Within a row both ends come from below.
    let control = if from.y == to.y { to_y + bend } else { to_y - bend };
    format!("M{x} {y}C{x} {} {to_x} {control} {to_x} {to_y}", y + bend)
}

/// The arrow at its end.
fn tip(from: &Placed, to: &Placed, aside: i32) -> String {
    let (_, y, bend) = ends(from, to);
    let back = if from.y != to.y && bend > 0 { -7 } else { 7 };
    format!("M{} {}l4 {} 4 {back}", to.edge() - aside - 4, y + back, -back)
}

/// Where a line begins and ends, and how far it bends.
fn ends(from: &Placed, to: &Placed) -> (i32, i32, i32) {
    let (below, above) = (BOX + 2, -3);
    match from.y.cmp(&to.y) {
        Ordering::Equal => (from.y + below, to.y + below, 26),
        Ordering::Less => (from.y + below, to.y + above, 34),
        Ordering::Greater => (from.y + above, to.y + below, -34),
    }
}

/// The place of the words at a line.
fn beside(from: &Placed, to: &Placed) -> (i32, i32) {
    let x = (from.edge() + to.edge()) / 2;
    let y = if from.y == to.y { from.y + BOX + 34 } else { (from.y + to.y + BOX) / 2 - 5 };
    (x, y)
}

/// The drawing in words.
fn description(names: &[String], finding: &Finding, around: &Around) -> String {
    let mut words = String::new();
    for (&lane, name) in around.lanes.iter().zip(names) {
        let steps = around.steps.iter().filter(|step| step.lane == lane);
        let steps: Vec<String> =
            steps.map(|step| format!("{} {}", op(step.g), step.label)).collect();
        let _ = write!(words, "{name}: {}. ", steps.join(", "));
    }
    let edges: BTreeSet<String> = around
        .edges
        .iter()
        .map(|edge| format!("{} to {}", op(around.steps[edge.from].g), op(around.steps[edge.to].g)))
        .collect();
    if !edges.is_empty() {
        let edges: Vec<String> = edges.into_iter().collect();
        let _ = write!(words, "Edges: {}. ", edges.join(", "));
    }
    let _ = write!(words, "From (1) to (2): {}.", missing(finding));
    words
}
