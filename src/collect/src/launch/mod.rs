//! The states of a launch, from its record to the accesses that the analysis rests on.
//!
//! The accesses of a launch follow from the code of its kernel, and that code is read on another
//! thread. The launch cannot wait for long: all later calls wait behind it. So it passes through
//! these states, each a type, each arrow a function that consumes the state before:
//!
//! ```text
//!     entered ──────── its code is known, or nobody reads it ──────────────▶ known
//!        │                                                                     ▲
//!        ├── its code was asked for a moment ago ──▶ waits for its code        │
//!        │                                           (`Entrance`)              │
//!        │                                             │      │                │
//!        │                                             │      └─ its answer ───┤
//!        │ its code is being read                      │ patience, pressure    │
//!        ▼                                             ▼                       │
//!     known by its words (`ByWords`) ◀─────────────────┘                       │
//!        │                  │                                                  │
//!        │ its answer       └── the run ends without an answer: it stays ──────┤
//!        ▼                                                                     │
//!     code known (`CodeKnown`) ──── looked at again, replaced (`Known`) ───────┘
//! ```
//!
//! - *Entered*: the merge hands the launch out ([`Ready::Call`](crate::merge::Ready::Call)).
//! - *Waits for its code*: [`Entrance`] keeps the launch, and with it everything behind it, for some
//!   milliseconds. At most one launch is in this state.
//! - *Known by its words*: the launch was handed to the trace and the engine. It may touch all memory
//!   that a word of its parameters points into. [`ByWords`] holds what is needed to look at the launch
//!   again.
//! - *Code known*: [`CodeKnown`] is queued. Launches are looked at again a few at a time, because
//!   thousands may have waited for one answer.
//! - *Known*: the accesses do not change any more. [`Resolved`] says in which way a launch leaves its
//!   resolution. Where the launch had been handed on by its words, [`KnownLaunch`] carries what replaces
//!   them to the trace, and the run is analysed again at its end.
//!
//! The simulated driver reports what kernels touched. A report may come before or after its launch is
//! resolved, and in parts; [`Reports`] keeps those that cannot be used yet.
//!
//! Deliberately absent: how accesses follow from code (`resolve::code_accesses`), and how what
//! becomes known late reaches the disk (`recorder`).

mod by_words;
mod entrance;
mod known;
mod reports;

pub(crate) use by_words::{ByWords, CodeKnown, LaunchedWith, Special, Targets};
pub(crate) use entrance::{Entrance, Pressure};
pub(crate) use known::{KnownLaunch, Resolved};
pub(crate) use reports::{MeasuredReport, Report, Reports};
