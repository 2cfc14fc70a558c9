//! The shared-memory wire between the runtime inside the program and the collector.
//!
//! One declarative table (`table.rs`) names every hooked driver call with its C parameters; the
//! `Api` enum, the signatures, the runtime's hooks and the decoder follow from it. Records travel
//! through single-producer rings, one a host thread, in files of a run directory that the
//! collector owns, so that a program killed at any point loses nothing that it published.
//!
//! Invariants: the producer side neither allocates nor locks; the consumer trusts nothing that it
//! reads from shared memory (a program may overwrite it) and never panics on it.
//!
//! Deliberately absent: any meaning of a call. Handles stay numbers here.

mod api;
mod clock;
mod control;
mod counted;
mod decode;
mod encode;
mod entry;
mod fences;
mod graph;
mod guard;
mod host;
mod image;
mod leftover;
mod liveness;
mod machine;
mod map;
mod measure;
mod measure_abi;
mod measure_hooks;
mod merge;
mod path;
mod process;
mod python;
mod record;
mod ring;
mod run_directory;
mod signature;
mod stack;
mod table;

pub use api::Api;
pub use clock::{monotonic_ns, read_clock};
pub use control::{ABI_VERSION, CONTROL_FILE, ClockSource, Control, RUN_DIR_VARIABLE};
pub use counted::Counted;
pub use decode::Malformed;
pub use encode::{BlobTag, Body, NO_LAYOUT, RecordKind};
pub use entry::{ENTRY_POINTS, Effect, EntryPoint, effect_of, entry_points, find_entry};
pub use fences::{FenceCounters, FenceCounts, LeftAlone, NotFenced, OwnCalls, Unwatched};
pub use graph::{GraphEdges, GraphPart, NodeTag, WireEdge, node_kind};
pub use host::{
    ALLOW_DOMAIN, CollectivePhase, HostCall, HostOrder, TEST_DOMAIN, Transfer, host_body,
};
pub use image::{Image, ImageOrigin, image_body, image_file};
pub use liveness::{ProcessStat, pid_namespace};
pub use machine::{page_bytes, ticks};
pub use map::{Mapping, map_existing, map_new};
pub use measure::{BadRule, MEASURE_FILE, MEASURE_VARIABLE, MeasureRule, Selection};
pub use measure_abi::{
    LONGEST_DETAIL, MEASURED_IN_PART, MEASURED_KNOWS_EARLY, MeasuredRun, NotMeasured,
};
pub use measure_hooks::{MEASURE_PATCHES_VARIABLE, MeasureHooks, SANITIZER_VARIABLE};
pub use path::PathBuffer;
pub use process::{
    ArgumentsText, PROCESS_BYTES, ProcessFile, UNKNOWN_NAME_BYTES, UNKNOWN_SLOTS, UnknownEntry,
};
pub use python::PythonRefusal;
pub use record::{
    Access, AccessList, Blobs, Envelope, ParamLayout, ProcessKey, Record, RecordedMode, RunList,
    ThreadKey, Words,
};
pub use ring::{IDLE, Producer, RING_HEADER_BYTES, RingHeader};
pub use run_directory::{ProcessInfo, RingOptions, RunDirectory};
pub use signature::{Param, ParamKind, Parameter, Scalar, Signature, kinds};
pub use stack::{LONGEST_FRAME_TEXT, LoadedObject, StackFrame, StackFrames, StackMode};
