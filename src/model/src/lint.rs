//! Lints: calls that cannot have the effect that they seem to have, without a conflict in this run.

use crate::{EventId, Fingerprint, OpSeq, RaceClass, StackId, StreamId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A call that cannot have the effect that it seems to have. A lint that explains a race is folded
/// into it: the lint is dropped where a race of the same class names `op` or `related` as the
/// nearest event operation. A lint about two streams that race with each other is dropped too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lint {
    /// Equal for all occurrences of one mistake.
    pub fingerprint: Fingerprint,
    /// The class of the lint.
    pub class: RaceClass,
    /// The call at which the lint is reported.
    pub op: OpSeq,
    /// Exact entry point of that call.
    pub api: Arc<str>,
    /// The stream of the call, if the call is issued to one.
    pub stream: Option<StreamId>,
    /// The event in question, if there is one.
    pub event: Option<EventId>,
    /// The other call in question: the wait that nothing has consumed yet, or the use of the
    /// non-blocking stream.
    pub related: Option<OpSeq>,
    /// The stack of the call, where recorded.
    pub stack: Option<StackId>,
    /// The stack of the other call, where recorded.
    pub related_stack: Option<StackId>,
}
