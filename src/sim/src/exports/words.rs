//! Stream memory operations.

use super::args::{In, Out};
use super::enter::{api, twins};
use crate::driver::{Call, DefaultStream, NodeKind, NodeSpec, WordAction, WordOp, WordsNode};
use crate::errors::{CuError, Outcome};

/// CUstreamBatchMemOpParams: operation, address, value, flags, and an address that the driver
/// writes.
pub(super) type Params = [u64; 6];

/// CUDA_BATCH_MEM_OP_NODE_PARAMS.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct BatchNodeParams {
    context: u64,
    count: u32,
    list: u64,
    flags: u32,
}

const _: () = assert!(size_of::<BatchNodeParams>() == 32);

const NO_MEMORY_BARRIER: u32 = 1;

fn write(address: u64, value: u64, wide: bool, flags: u32) -> Outcome<WordOp> {
    if flags & !NO_MEMORY_BARRIER != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    Ok(WordOp { address, wide, value, action: WordAction::Write })
}

fn wait(address: u64, value: u64, wide: bool, flags: u32) -> Outcome<WordOp> {
    Ok(WordOp { address, wide, value, action: WordAction::wait(flags)? })
}

/// The action of an entry of a batch; a barrier does nothing here, where memory is in order.
fn decode(params: &Params) -> Outcome<Option<WordOp>> {
    let [operation, address, value, flags, ..] = *params;
    let (low, flags) = (value & u64::from(u32::MAX), flags as u32);
    Ok(Some(match operation as u32 {
        1 => wait(address, low, false, flags)?,
        2 => write(address, low, false, flags)?,
        4 => wait(address, value, true, flags)?,
        5 => write(address, value, true, flags)?,
        6 => return Ok(None),
        3 | 8 => return Err(CuError::NOT_SUPPORTED),
        _ => return Err(CuError::INVALID_VALUE),
    }))
}

/// The entry that says the same as an operation.
fn encode(op: &WordOp, flags: u32) -> Params {
    let operation = match (op.action, op.wide) {
        (WordAction::Write, false) => 2,
        (WordAction::Write, true) => 5,
        (_, false) => 1,
        (_, true) => 4,
    };
    [operation, op.address, op.value, flags.into(), 0, 0]
}

fn list(params: In<Params>, count: u32) -> Outcome<WordsNode> {
    let raw: Vec<Params> =
        (0..count as usize).map(|index| params.at(index)).collect::<Outcome<_>>()?;
    let ops: Vec<WordOp> =
        raw.iter().filter_map(|params| decode(params).transpose()).collect::<Outcome<_>>()?;
    Ok(WordsNode { ops: ops.into(), raw: raw.into(), context: 0 })
}

fn single(call: &Call, op: WordOp, flags: u32, stream: u64, default: DefaultStream) -> Outcome {
    let raw = [encode(&op, flags)];
    let node = WordsNode { ops: [op].into(), raw: raw.into(), context: 0 };
    call.words(node, stream, default)
}

fn batch(
    call: &Call,
    stream: u64,
    count: u32,
    params: In<Params>,
    flags: u32,
    default: DefaultStream,
) -> Outcome {
    if flags != 0 {
        return Err(CuError::INVALID_VALUE);
    }
    call.words(list(params, count)?, stream, default)
}

/// Reads the parameters of a node.
pub(super) fn node_spec(params: In<BatchNodeParams>) -> Outcome<NodeSpec<'static>> {
    let params = params.get()?;
    if params.flags != 0 || params.count == 0 {
        return Err(CuError::INVALID_VALUE);
    }
    let node = list(In::from_address(params.list), params.count)?;
    Ok(NodeSpec::Words(WordsNode { context: params.context, ..node }))
}

/// The parameters of a node; the list is the node's own.
pub(super) fn node_params(node: &WordsNode) -> BatchNodeParams {
    let (count, list) = (node.raw.len() as u32, node.raw.as_ptr() as u64);
    BatchNodeParams { context: node.context, count, list, flags: 0 }
}

impl BatchNodeParams {
    pub(super) fn words(&self) -> [u64; 4] {
        [self.context, self.count.into(), self.list, self.flags.into()]
    }
}

api! { TABLE;
    fn cuGraphAddBatchMemOpNode(
        node: Out<u64>,
        graph: u64,
        after: In<u64>,
        count: u64,
        params: In<BatchNodeParams>,
    ) |call| {
        node.check()?;
        let after = super::graph::build::dependencies(after, In::NULL, count)?;
        node.set(call.graph_add(graph, &after, &node_spec(params)?)?)
    }
    fn cuGraphBatchMemOpNodeGetParams(node: u64, params: Out<BatchNodeParams>) |call| {
        match call.node(node)? {
            NodeKind::Words(words) => params.set(node_params(&words)),
            _ => Err(CuError::INVALID_VALUE),
        }
    }
    fn cuGraphBatchMemOpNodeSetParams(node: u64, params: In<BatchNodeParams>) |call| {
        call.node_set(node, &node_spec(params)?)
    }
    fn cuGraphExecBatchMemOpNodeSetParams(exec: u64, node: u64, params: In<BatchNodeParams>) |call| {
        call.exec_set(exec, node, &node_spec(params)?)
    }
}

macro_rules! word_twins {
    ($($name:ident / $twin:ident: $value:ty, $wide:literal, $make:ident;)*) => {
        twins! { TWINS;
            $(
                fn $name / $twin(
                    stream: u64,
                    address: u64,
                    value: $value,
                    flags: u32,
                ) |call, default| {
                    let op = $make(address, value.into(), $wide, flags)?;
                    single(call, op, flags, stream, default)
                }
            )*
            fn cuStreamBatchMemOp / cuStreamBatchMemOp_ptsz(
                stream: u64,
                count: u32,
                params: In<Params>,
                flags: u32,
            ) |call, default| { batch(call, stream, count, params, flags, default) }
            fn cuStreamBatchMemOp_v2 / cuStreamBatchMemOp_v2_ptsz(
                stream: u64,
                count: u32,
                params: In<Params>,
                flags: u32,
            ) |call, default| { batch(call, stream, count, params, flags, default) }
        }
    };
}

word_twins! {
    cuStreamWriteValue32 / cuStreamWriteValue32_ptsz: u32, false, write;
    cuStreamWriteValue32_v2 / cuStreamWriteValue32_v2_ptsz: u32, false, write;
    cuStreamWriteValue64 / cuStreamWriteValue64_ptsz: u64, true, write;
    cuStreamWriteValue64_v2 / cuStreamWriteValue64_v2_ptsz: u64, true, write;
    cuStreamWaitValue32 / cuStreamWaitValue32_ptsz: u32, false, wait;
    cuStreamWaitValue32_v2 / cuStreamWaitValue32_v2_ptsz: u32, false, wait;
    cuStreamWaitValue64 / cuStreamWaitValue64_ptsz: u64, true, wait;
    cuStreamWaitValue64_v2 / cuStreamWaitValue64_v2_ptsz: u64, true, wait;
}
