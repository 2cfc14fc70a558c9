//! The recipe of a random program. Every number is taken modulo the number of choices, so that any
//! part of a recipe can be left out and the rest still makes a program.

use super::{build, render};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt;
use streamsan_model::{
    Basis, ConditionalKind, EdgePort, GridControl, LaunchEventKind, MemoryKind, Mode, SourceOrder,
    StreamKind, Trigger,
};

/// A program to be.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) contexts: u8,
    /// Whether all contexts are on one device.
    pub(crate) one_device: bool,
    /// Whether the second context is a green one, a part of the first.
    pub(crate) green: bool,
    /// Context and kind; a second default stream of the same kind becomes a blocking stream.
    pub(crate) streams: Vec<(u8, StreamKind, Birth)>,
    pub(crate) events: u8,
    /// Buffers that are older than the trace.
    pub(crate) buffers: Vec<(MemoryKind, Size)>,
    pub(crate) threads: u8,
    /// Runs of the longest strided pattern.
    pub(crate) most_runs: u64,
    /// Whether a call's exit has the index of its entry, as in a text trace.
    pub(crate) exit_is_entry: bool,
    /// Whether the program dies within the calls that are still running at its end.
    pub(crate) dies: bool,
    /// A step that was left out is `None`: programs shrink to nothing, and yet are long at first.
    pub(crate) steps: Vec<Option<(Call, Step)>>,
}

/// Prints the program that the recipe makes, which a failing property shows.
impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\n")?;
        f.write_str(&render(&build(self)))
    }
}

/// When a stream comes into being.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Birth {
    BeforeTheTrace,
    AtFirstUse,
}

/// Bytes of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Small,
    Medium,
    Large,
}

/// The calling thread, and the outcome of the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) thread: u8,
    pub(crate) fails: bool,
    /// How many calls of the other thread a waiting call lasts.
    pub(crate) lasts: u8,
}

/// A part of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Whole,
    /// In sixteenths of the buffer.
    Part {
        start: u8,
        len: u8,
    },
    Bytes {
        start: u8,
        len: u8,
    },
    Rows {
        start: u8,
        width: u8,
        gap: u8,
        rows: u8,
        slices: u8,
    },
}

/// A part of a buffer and what is done to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touch {
    pub(crate) buffer: u8,
    pub(crate) shape: Shape,
    pub(crate) mode: Mode,
    pub(crate) basis: Basis,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Launch { stream: u8, touches: Vec<Touch>, overlap: Overlap },
    Copy { stream: u8, synchronous: bool, from: u8, to: u8, shape: Shape },
    Memset { stream: u8, synchronous: bool, buffer: u8, shape: Shape },
    Host { touches: Vec<Touch> },
    Record { event: u8, stream: u8 },
    Wait { stream: u8, event: u8 },
    RecordContext { event: u8, context: u8 },
    HoldBackContext { context: u8, event: u8 },
    DestroyEvent { event: u8 },
    SynchronizeStream { stream: u8 },
    SynchronizeEvent { event: u8 },
    SynchronizeContext { context: u8 },
    QueryStream { stream: u8, is_complete: bool },
    QueryEvent { event: u8, is_complete: bool },
    ElapsedTime { start: u8, end: u8 },
    CreateStream { stream: u8 },
    DestroyStream { stream: u8 },
    Allocate { buffer: u8, kind: MemoryKind, stream: u8, size: Size, at_old_address: bool },
    Free { buffer: u8, stream: Option<u8> },
    Prefetch { stream: u8, buffer: u8, shape: Shape },
    Discard { stream: u8, buffer: u8, shape: Shape },
    Batch { stream: u8, entries: Vec<(u8, u8, Shape, SourceOrder)> },
    Instantiate { executable: u8, nodes: Vec<NodeRecipe> },
    LaunchGraph { executable: u8, stream: u8 },
    UploadGraph { executable: u8, stream: u8 },
    Signal { stream: u8, semaphore: u8, value: u8, releases: bool },
    AwaitSignal { stream: u8, semaphore: u8, value: u8, exactly: bool },
    Release { object: u8 },
    Acquire { object: u8 },
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub(crate) struct NodeRecipe {
    pub(crate) kind: NodeKind,
    pub(crate) touches: Vec<Touch>,
    /// A bit for each node before: whether there is an edge, and whether that has another port than
    /// the end of the node.
    pub(crate) behind: u8,
    pub(crate) programmatic: u8,
    pub(crate) port: EdgePort,
}

/// How a launch and its kernel overlap the kernels before and behind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overlap {
    pub(crate) programmatic: bool,
    pub(crate) control: GridControl,
    /// An event that the launch records by attribute.
    pub(crate) event: Option<(u8, LaunchEventKind)>,
}

/// The work of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeKind {
    Kernel {
        control: GridControl,
    },
    Memset,
    Disabled,
    Record {
        event: u8,
    },
    Wait {
        event: u8,
    },
    /// A graph of a kernel for each touch, one behind the other or side by side: a child graph, or
    /// the body of a conditional node.
    Body {
        condition: Option<ConditionalKind>,
        chained: bool,
    },
}

/// The number of early accesses may be larger than that of all of them.
fn control() -> impl Strategy<Value = GridControl> {
    (any::<bool>(), 0..3u32, select(&Trigger::ALL[..])).prop_map(|(waits, early, trigger)| {
        GridControl { waits, early: if waits { early } else { 0 }, trigger }
    })
}

fn overlap() -> impl Strategy<Value = Overlap> {
    let kind = prop_oneof![
        3 => Just(LaunchEventKind::Programmatic),
        1 => Just(LaunchEventKind::BlockStart),
        1 => Just(LaunchEventKind::LaunchCompletion),
    ];
    let event = proptest::option::weighted(0.2, (0..4u8, kind));
    prop_oneof![
        2 => Just(Overlap::default()),
        1 => (any::<bool>(), control(), event)
            .prop_map(|(programmatic, control, event)| Overlap { programmatic, control, event }),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        4 => Just(Shape::Whole),
        3 => (0..16u8, 1..=16u8).prop_map(|(start, len)| Shape::Part { start, len }),
        1 => any::<(u8, u8)>().prop_map(|(start, len)| Shape::Bytes { start, len }),
        2 => (0..32u8, 1..=5u8, 1..=5u8, 2..=5u8, 1..=2u8).prop_map(
            |(start, width, gap, rows, slices)| Shape::Rows { start, width, gap, rows, slices }
        ),
        1 => (0..4u8, 1..=2u8, 1..=2u8, 60..=80u8).prop_map(|(start, width, gap, rows)| {
            Shape::Rows { start, width, gap, rows, slices: 1 }
        }),
    ]
}

fn touch() -> impl Strategy<Value = Touch> {
    let mode_and_basis = prop_oneof![
        6 => (
            prop_oneof![
                4 => Just(Mode::Read),
                4 => Just(Mode::Write),
                2 => Just(Mode::ReadWrite),
                2 => Just(Mode::Atomic),
                2 => Just(Mode::StrongRead),
                1 => Just(Mode::StrongWrite),
                1 => Just(Mode::StrongAtomic),
            ],
            prop_oneof![
                6 => Just(Basis::Exact),
                2 => Just(Basis::Inferred),
                3 => Just(Basis::Anchored),
                1 => Just(Basis::Assumed),
            ],
        ),
        1 => Just((Mode::MayWrite, Basis::Assumed)),
    ];
    (0..3u8, shape(), mode_and_basis).prop_map(|(buffer, shape, (mode, basis))| {
        // Single bytes are what measuring gives.
        let basis = match (&shape, basis) {
            (Shape::Bytes { .. }, Basis::Exact) => Basis::Measured,
            _ => basis,
        };
        Touch { buffer, shape, mode, basis }
    })
}

fn memory_kind() -> impl Strategy<Value = MemoryKind> {
    prop_oneof![
        4 => Just(MemoryKind::Device),
        2 => Just(MemoryKind::StreamOrdered),
        2 => Just(MemoryKind::Pinned),
        1 => Just(MemoryKind::Managed),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    prop_oneof![Just(Size::Small), Just(Size::Medium), Just(Size::Large)]
}

fn node() -> impl Strategy<Value = NodeRecipe> {
    let condition =
        proptest::option::of(prop_oneof![Just(ConditionalKind::If), Just(ConditionalKind::While)]);
    let kind = prop_oneof![
        8 => control().prop_map(|control| NodeKind::Kernel { control }),
        2 => Just(NodeKind::Memset),
        1 => Just(NodeKind::Disabled),
        1 => (0..4u8).prop_map(|event| NodeKind::Record { event }),
        1 => (0..4u8).prop_map(|event| NodeKind::Wait { event }),
        2 => (condition, any::<bool>())
            .prop_map(|(condition, chained)| NodeKind::Body { condition, chained }),
    ];
    let programmatic = prop_oneof![3 => Just(0), 1 => any::<u8>()];
    let port = prop_oneof![
        3 => Just(EdgePort::Triggered),
        1 => Just(EdgePort::Begun),
        1 => Just(EdgePort::BegunOnly),
    ];
    (kind, vec(touch(), 1..=2), any::<u8>(), programmatic, port).prop_map(
        |(kind, touches, behind, programmatic, port)| NodeRecipe {
            kind,
            touches,
            behind,
            programmatic,
            port,
        },
    )
}

fn source_order() -> impl Strategy<Value = SourceOrder> {
    proptest::sample::select(&SourceOrder::ALL[..])
}

fn signal() -> impl Strategy<Value = Step> {
    (0..6u8, 0..4u8, 0..3u8, proptest::bool::weighted(0.9)).prop_map(
        |(stream, semaphore, value, releases)| Step::Signal { stream, semaphore, value, releases },
    )
}

/// Calls that programs without graphs and managed memory do not make.
fn later_step() -> impl Strategy<Value = Step> {
    let s = || 0..6u8;
    let b = || 0..3u8;
    let x = || 0..2u8;
    prop_oneof![
        2 => (s(), b(), shape())
            .prop_map(|(stream, buffer, shape)| Step::Prefetch { stream, buffer, shape }),
        2 => (s(), b(), shape())
            .prop_map(|(stream, buffer, shape)| Step::Discard { stream, buffer, shape }),
        2 => (s(), vec((b(), b(), shape(), source_order()), 1..=3))
            .prop_map(|(stream, entries)| Step::Batch { stream, entries }),
        3 => (x(), vec(node(), 1..=6))
            .prop_map(|(executable, nodes)| Step::Instantiate { executable, nodes }),
        8 => (x(), s()).prop_map(|(executable, stream)| Step::LaunchGraph { executable, stream }),
        1 => (x(), s()).prop_map(|(executable, stream)| Step::UploadGraph { executable, stream }),
        4 => signal(),
        6 => (s(), 0..4u8, 0..3u8, any::<bool>()).prop_map(|(stream, semaphore, value, exactly)| {
            Step::AwaitSignal { stream, semaphore, value, exactly }
        }),
        3 => x().prop_map(|object| Step::Release { object }),
        3 => x().prop_map(|object| Step::Acquire { object }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => early_step(), 1 => later_step()]
}

fn early_step() -> impl Strategy<Value = Step> {
    let s = || 0..6u8;
    let e = || 0..4u8;
    let b = || 0..3u8;
    let launch = (s(), vec(touch(), 1..=3));
    let copy = (s(), any::<bool>(), b(), b(), shape());
    let memset = (s(), any::<bool>(), b(), shape());
    let allocate = (b(), memory_kind(), s(), size(), any::<bool>());
    prop_oneof![
        14 => (launch, overlap()).prop_map(|((stream, touches), overlap)| {
            Step::Launch { stream, touches, overlap }
        }),
        6 => copy.prop_map(|(stream, synchronous, from, to, shape)| {
            Step::Copy { stream, synchronous, from, to, shape }
        }),
        3 => memset.prop_map(|(stream, synchronous, buffer, shape)| {
            Step::Memset { stream, synchronous, buffer, shape }
        }),
        2 => vec(touch(), 1..=2).prop_map(|touches| Step::Host { touches }),
        8 => (e(), s()).prop_map(|(event, stream)| Step::Record { event, stream }),
        8 => (s(), e()).prop_map(|(stream, event)| Step::Wait { stream, event }),
        1 => (e(), 0..2u8).prop_map(|(event, context)| Step::RecordContext { event, context }),
        1 => (0..2u8, e()).prop_map(|(context, event)| Step::HoldBackContext { context, event }),
        1 => e().prop_map(|event| Step::DestroyEvent { event }),
        2 => s().prop_map(|stream| Step::SynchronizeStream { stream }),
        2 => e().prop_map(|event| Step::SynchronizeEvent { event }),
        1 => (0..2u8).prop_map(|context| Step::SynchronizeContext { context }),
        1 => (s(), any::<bool>())
            .prop_map(|(stream, is_complete)| Step::QueryStream { stream, is_complete }),
        1 => (e(), any::<bool>())
            .prop_map(|(event, is_complete)| Step::QueryEvent { event, is_complete }),
        1 => (e(), e()).prop_map(|(start, end)| Step::ElapsedTime { start, end }),
        1 => s().prop_map(|stream| Step::CreateStream { stream }),
        1 => s().prop_map(|stream| Step::DestroyStream { stream }),
        3 => allocate.prop_map(|(buffer, kind, stream, size, at_old_address)| {
            Step::Allocate { buffer, kind, stream, size, at_old_address }
        }),
        2 => (b(), proptest::option::of(s()))
            .prop_map(|(buffer, stream)| Step::Free { buffer, stream }),
    ]
}

/// Runs of a strided pattern that the engine keeps one by one.
const SHORT_PATTERN: u64 = 64;

/// Programs with strided patterns of many runs.
pub(crate) fn recipe_with_long_patterns() -> impl Strategy<Value = Recipe> {
    recipe(1).prop_map(|recipe| Recipe { most_runs: u64::MAX, ..recipe })
}

/// A launch that overlaps no other kernel of its stream.
fn launch(stream: u8, touches: Vec<Touch>) -> Step {
    Step::Launch { stream, touches, overlap: Overlap::default() }
}

/// Steps of programs that create a stream for each piece of work. Accesses cover whole buffers, so
/// that those of many streams meet.
fn short_lived_step() -> impl Strategy<Value = Step> {
    let s = || 0..6u8;
    let b = || 0..3u8;
    let shape = || prop_oneof![6 => Just(Shape::Whole), 1 => shape()];
    let mode = prop_oneof![6 => Just(Mode::Read), 1 => Just(Mode::Write), 1 => Just(Mode::Atomic)];
    let touch = (b(), shape(), mode).prop_map(|(buffer, shape, mode)| Touch {
        buffer,
        shape,
        mode,
        basis: Basis::Exact,
    });
    prop_oneof![
        8 => s().prop_map(|stream| Step::CreateStream { stream }),
        8 => s().prop_map(|stream| Step::DestroyStream { stream }),
        8 => (s(), vec(touch, 1..=2))
            .prop_map(|(stream, touches)| launch(stream, touches)),
        8 => (s(), b(), b(), shape()).prop_map(|(stream, from, to, shape)| {
            Step::Copy { stream, synchronous: false, from, to, shape }
        }),
        6 => s().prop_map(|stream| Step::SynchronizeStream { stream }),
        6 => early_step(),
    ]
}

/// Programs of many streams that live for a few operations.
pub(crate) fn recipe_of_short_lived_streams(threads: u8) -> impl Strategy<Value = Recipe> {
    let call = (0..threads, proptest::bool::weighted(0.02), 0..3u8)
        .prop_map(|(thread, fails, lasts)| Call { thread, fails, lasts });
    let steps = vec(proptest::option::weighted(0.98, (call, short_lived_step())), 60..=160);
    (recipe(threads), steps).prop_map(|(recipe, steps)| Recipe { steps, ..recipe })
}

/// Programs that destroy most streams without a wait for them.
pub(crate) fn recipe_of_streams_left_behind() -> impl Strategy<Value = Recipe> {
    let s = || 0..6u8;
    let mode = prop_oneof![9 => Just(Mode::Read), 1 => Just(Mode::Write), 1 => Just(Mode::Atomic)];
    let touch =
        mode.prop_map(|mode| Touch { buffer: 0, shape: Shape::Whole, mode, basis: Basis::Exact });
    let step = prop_oneof![
        20 => s().prop_map(|stream| Step::CreateStream { stream }),
        20 => s().prop_map(|stream| Step::DestroyStream { stream }),
        20 => (s(), vec(touch, 1..=1))
            .prop_map(|(stream, touches)| launch(stream, touches)),
        1 => (0..4u8, s()).prop_map(|(event, stream)| Step::Record { event, stream }),
        1 => (s(), 0..4u8).prop_map(|(stream, event)| Step::Wait { stream, event }),
        1 => s().prop_map(|stream| Step::SynchronizeStream { stream }),
        1 => (0..4u8, 0..2u8).prop_map(|(event, context)| Step::RecordContext { event, context }),
        1 => (0..2u8, 0..4u8)
            .prop_map(|(context, event)| Step::HoldBackContext { context, event }),
        1 => (0..2u8).prop_map(|context| Step::SynchronizeContext { context }),
        2 => early_step(),
    ];
    let call = proptest::bool::weighted(0.02).prop_map(|fails| Call { thread: 0, fails, lasts: 0 });
    let steps = vec(proptest::option::weighted(0.98, (call, step)), 60..=160);
    let kind = prop_oneof![
        4 => Just(StreamKind::NonBlocking),
        2 => Just(StreamKind::Blocking),
        1 => Just(StreamKind::Legacy),
    ];
    let streams = vec((0..2u8, kind, Just(Birth::AtFirstUse)), 5..=6);
    (recipe(1), streams, steps).prop_map(|(recipe, streams, steps)| Recipe {
        streams,
        steps,
        ..recipe
    })
}

/// Programs of so many host threads.
pub(crate) fn recipe(threads: u8) -> impl Strategy<Value = Recipe> {
    let stream_kind = prop_oneof![
        3 => Just(StreamKind::Blocking),
        3 => Just(StreamKind::NonBlocking),
        2 => Just(StreamKind::Legacy),
        2 => Just(StreamKind::PerThread),
    ];
    let birth = prop_oneof![2 => Just(Birth::BeforeTheTrace), 1 => Just(Birth::AtFirstUse)];
    let buffer_kind = prop_oneof![3 => memory_kind(), 1 => Just(MemoryKind::Pageable)];
    let call = (0..threads, proptest::bool::weighted(0.04), 0..5u8)
        .prop_map(|(thread, fails, lasts)| Call { thread, fails, lasts });
    (
        (1..=2u8, any::<bool>(), proptest::bool::weighted(0.3)),
        vec((0..2u8, stream_kind, birth), 2..=6),
        1..=4u8,
        vec((buffer_kind, size()), 1..=3),
        (proptest::bool::weighted(0.3), any::<bool>()),
        vec(proptest::option::weighted(0.98, (call, step())), 15..=60),
    )
        .prop_map(move |(contexts, streams, events, buffers, (as_text, dies), steps)| Recipe {
            contexts: contexts.0,
            one_device: contexts.1 || contexts.2,
            green: contexts.2,
            streams,
            events,
            buffers,
            threads,
            most_runs: SHORT_PATTERN,
            exit_is_entry: as_text && threads == 1,
            dies,
            steps,
        })
}
