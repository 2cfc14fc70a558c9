//! The action of a graph's node: the words behind the node's name.

use crate::SyntaxError;
use crate::memory;
use crate::signal::{self, Parts};
use crate::verb::{self, Issue};
use streamsan_model::{
    Access, Action, ConditionalKind, GraphId, MemoryKind, Mode, NodeAction, SignalObject,
    SignalOperation, StreamId,
};

/// The action and the accesses of a node.
#[derive(Debug)]
pub(crate) struct Body {
    /// The usual entry point that adds such a node.
    pub(crate) api: String,
    pub(crate) action: NodeAction,
    pub(crate) accesses: Vec<Access>,
}

impl Body {
    fn plain(action: NodeAction) -> Self {
        Self::new(action, Vec::new())
    }

    fn new(action: NodeAction, accesses: Vec<Access>) -> Self {
        Self { api: add(&action).to_owned(), action, accesses }
    }
}

/// The stream of copies in nodes, which has no meaning.
const NO_STREAM: StreamId = StreamId(0);

/// Parses the body of a node.
pub(crate) fn body(issue: &mut Issue<'_, '_>) -> Result<Body, SyntaxError> {
    const FORM: &str = "what the node does, such as `launch`, `copy` or `memset`";
    let word = issue.cursor.next(FORM)?;
    // Errors stand at what the node does.
    issue.verb = word;
    let body = match word.text {
        "launch" => {
            let name = verb::kernel_name(issue)?;
            let kernel = issue.scope.kernel(name.text);
            let (control, accesses) = issue.kernel()?;
            Body::new(NodeAction::Kernel { kernel, control }, accesses)
        }
        "copy" | "copy2d" | "copy3d" | "copy_peer" => {
            let call = memory::copy_in(issue, word.text, Some(NO_STREAM))?;
            let Action::Copy(copy) = call.action else { return Err(word.expected(FORM)) };
            Body::new(NodeAction::Copy(copy), call.accesses)
        }
        "memset" | "memset2d" => {
            let call = memory::memset_in(issue, word.text, Some(NO_STREAM))?;
            let Action::Memset { destination, .. } = call.action else {
                return Err(word.expected(FORM));
            };
            Body::new(NodeAction::Memset { destination }, call.accesses)
        }
        "host_fn" => Body::new(NodeAction::HostFunction, issue.accesses()?),
        "record" | "wait" => {
            let token = issue.cursor.next("an event")?;
            let event = issue.scope.event(token, None)?;
            Body::plain(match word.text {
                "record" => NodeAction::EventRecord { event },
                _ => NodeAction::EventWait { event },
            })
        }
        "alloc" => {
            let allocation = memory::declare_in_graph(issue)?;
            let accesses = memory::whole_access(issue, allocation, Mode::Allocate);
            Body::new(NodeAction::Allocate { allocation }, accesses)
        }
        "free" => {
            let token = issue.cursor.next("a buffer")?;
            let buffer = issue.scope.buffer(token)?;
            let (allocation, kind) = (buffer.id, buffer.kind);
            if kind != MemoryKind::GraphOrdered {
                return Err(token.error(format!(
                    "`{}` is {}; a graph frees what a node of a graph has allocated",
                    token.text,
                    kind.description()
                )));
            }
            issue.scope.freed_by_node(allocation);
            let accesses = memory::whole_access(issue, allocation, Mode::Free);
            Body::new(NodeAction::Free { allocation }, accesses)
        }
        "child" => {
            let token = issue.cursor.next("a graph")?;
            Body::plain(NodeAction::Child { graph: issue.scope.graph(token)? })
        }
        "empty" => Body::plain(NodeAction::Empty),
        "if" => conditional(issue, ConditionalKind::If, 2)?,
        "while" => conditional(issue, ConditionalKind::While, 1)?,
        "switch" => conditional(issue, ConditionalKind::Switch, usize::MAX)?,
        "write_value" | "wait_value" | "signal" | "wait_signal" => {
            let Parts { operations, accesses } = signal::parts(issue, word.text)?;
            Body::new(NodeAction::Signals { operations }, accesses)
        }
        _ => return Err(word.expected(FORM)),
    };
    Ok(body)
}

fn conditional(
    issue: &mut Issue<'_, '_>,
    kind: ConditionalKind,
    most: usize,
) -> Result<Body, SyntaxError> {
    let mut bodies: Vec<GraphId> = Vec::new();
    let first = issue.cursor.next("a graph")?;
    bodies.push(issue.scope.graph(first)?);
    while bodies.len() < most
        && let Some(token) = issue.cursor.take()
    {
        bodies.push(issue.scope.graph(token)?);
    }
    Ok(Body::plain(NodeAction::Conditional { kind, bodies }))
}

/// The usual entry point that adds a node.
pub(crate) fn add(action: &NodeAction) -> &'static str {
    match action {
        NodeAction::Empty => "cuGraphAddEmptyNode",
        NodeAction::Kernel { .. } => "cuGraphAddKernelNode_v2",
        NodeAction::Copy(_) => "cuGraphAddMemcpyNode",
        NodeAction::Memset { .. } => "cuGraphAddMemsetNode",
        NodeAction::HostFunction => "cuGraphAddHostNode",
        NodeAction::EventRecord { .. } => "cuGraphAddEventRecordNode",
        NodeAction::EventWait { .. } => "cuGraphAddEventWaitNode",
        NodeAction::Allocate { .. } => "cuGraphAddMemAllocNode",
        NodeAction::Free { .. } => "cuGraphAddMemFreeNode",
        NodeAction::Child { .. } => "cuGraphAddChildGraphNode",
        NodeAction::Conditional { .. } | NodeAction::Unknown { .. } => "cuGraphAddNode_v2",
        NodeAction::Signals { operations } => match operations.first() {
            Some(SignalOperation::Signal { object: SignalObject::Semaphore(_), .. }) => {
                "cuGraphAddExternalSemaphoresSignalNode"
            }
            Some(SignalOperation::Wait { object: SignalObject::Semaphore(_), .. }) => {
                "cuGraphAddExternalSemaphoresWaitNode"
            }
            _ => "cuGraphAddBatchMemOpNode",
        },
    }
}

/// The entry point that sets the parameters of such a node of an executable graph; `None` where
/// there is none.
pub(crate) fn set_parameters(action: &NodeAction) -> Option<&'static str> {
    Some(match action {
        NodeAction::Kernel { .. } => "cuGraphExecKernelNodeSetParams_v2",
        NodeAction::Copy(_) => "cuGraphExecMemcpyNodeSetParams",
        NodeAction::Memset { .. } => "cuGraphExecMemsetNodeSetParams",
        NodeAction::HostFunction => "cuGraphExecHostNodeSetParams",
        NodeAction::EventRecord { .. } => "cuGraphExecEventRecordNodeSetEvent",
        NodeAction::EventWait { .. } => "cuGraphExecEventWaitNodeSetEvent",
        NodeAction::Child { .. } => "cuGraphExecChildGraphNodeSetParams",
        NodeAction::Signals { .. } => match add(action) {
            "cuGraphAddExternalSemaphoresSignalNode" => {
                "cuGraphExecExternalSemaphoresSignalNodeSetParams"
            }
            "cuGraphAddExternalSemaphoresWaitNode" => {
                "cuGraphExecExternalSemaphoresWaitNodeSetParams"
            }
            _ => "cuGraphExecBatchMemOpNodeSetParams",
        },
        NodeAction::Empty
        | NodeAction::Allocate { .. }
        | NodeAction::Free { .. }
        | NodeAction::Conditional { .. }
        | NodeAction::Unknown { .. } => return None,
    })
}
