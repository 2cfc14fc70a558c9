//! Lints: calls that cannot do what they seem to, without a conflict in this run.

use crate::{EventId, Fingerprint, OpSeq, RaceClass, StackId, StreamId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A call that cannot do what it seems to. A lint that explains a race is folded into it: it is
/// dropped where a race of the same class names `op` or `related` as what comes nearest. So is a lint
/// about two streams that race with each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lint {
    /// Equal for occurrences of one mistake.
    pub fingerprint: Fingerprint,
    /// Which lint.
    pub class: RaceClass,
    /// The call at which it stands.
    pub op: OpSeq,
    /// Exact entry point of that call.
    pub api: Arc<str>,
    /// The stream that the call is issued to, where it is issued to one.
    pub stream: Option<StreamId>,
    /// The event in question, where there is one.
    pub event: Option<EventId>,
    /// The other call in question: the wait that is not consumed yet, the use of the non-blocking
    /// stream.
    pub related: Option<OpSeq>,
    /// The stack of the call, where recorded.
    pub stack: Option<StackId>,
    /// The stack of the other call, where recorded.
    pub related_stack: Option<StackId>,
}
