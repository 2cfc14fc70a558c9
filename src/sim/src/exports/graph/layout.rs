//! The structures in which graph nodes are described.

use super::super::args::In;
use super::super::copy::Copy3D;
use super::super::launch::Passed;
use crate::driver::{
    AllocNode, COPY_WORDS, CopyNode, FillNode, FillSpec, HostNode, KernelNode, LaunchSpec,
    NodeKind, NodeSpec,
};
use crate::errors::{CuError, Outcome};

/// CUDA_KERNEL_NODE_PARAMS_v2 and _v3; the first version ends before the kernel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct KernelParams {
    pub(super) first: KernelParams1,
    kernel: u64,
    context: u64,
}

/// CUDA_KERNEL_NODE_PARAMS_v1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct KernelParams1 {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    pointers: u64,
    extra: u64,
}

/// CUDA_MEMSET_NODE_PARAMS_v1; the second version has a context behind it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct FillParams {
    start: u64,
    pitch: u64,
    value: u32,
    element: u32,
    width: u64,
    height: u64,
}

/// CUDA_HOST_NODE_PARAMS_v1.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct HostParams {
    pub(super) function: u64,
    pub(super) data: u64,
}

/// CUDA_MEM_ALLOC_NODE_PARAMS: the pool's properties (allocation type, handle types, location and
/// what is not read), access descriptions and their number, bytes, and the address made.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct AllocParams {
    allocation: u32,
    handles: u32,
    location: u32,
    device: i32,
    rest: [u64; 9],
    access: u64,
    access_count: u64,
    length: u64,
    pub(super) start: u64,
}

/// Where in CUDA_CONDITIONAL_NODE_PARAMS the list of bodies is.
pub(super) const BODIES: u64 = 16;

/// Where in [`AllocParams`] the address is.
pub(super) const ALLOC_START: u64 = 112;

/// CUgraphNodeParams: type, reserved, a union of 29 words, reserved.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(in crate::exports) struct NodeParams {
    pub(super) kind: u32,
    reserved: [u32; 3],
    of: [u64; 29],
    reserved_end: u64,
}

const _: () = assert!(
    size_of::<KernelParams1>() == 56
        && size_of::<KernelParams>() == 72
        && size_of::<FillParams>() == 40
        && size_of::<AllocParams>() == 120
        && size_of::<NodeParams>() == 256
        && size_of::<Copy3D>() == 8 * COPY_WORDS
);

/// Where in [`NodeParams`] the union starts.
pub(super) const UNION: u64 = 16;
const PINNED: u32 = 1;
const LOCATION_DEVICE: u32 = 1;

impl KernelParams1 {
    fn launch(&self) -> LaunchSpec {
        LaunchSpec::new(self.function, self.grid, self.block, self.dynamic_shared)
    }

    pub(super) fn passed(&self) -> Passed {
        Passed { pointers: In::from_address(self.pointers), extra: In::from_address(self.extra) }
    }

    pub(super) fn spec<'a>(&self, passed: &'a Passed) -> NodeSpec<'a> {
        NodeSpec::Kernel { launch: self.launch(), kernel: 0, context: 0, parameters: passed }
    }
}

impl KernelParams {
    /// The kernel is only looked at where there is no function.
    pub(super) fn spec<'a>(&self, passed: &'a Passed) -> NodeSpec<'a> {
        let (launch, kernel) = (self.first.launch(), self.kernel);
        NodeSpec::Kernel { launch, kernel, context: self.context, parameters: passed }
    }
}

impl From<&KernelNode> for KernelParams {
    fn from(node: &KernelNode) -> KernelParams {
        let first = KernelParams1 {
            function: node.function,
            grid: node.grid(),
            block: node.block(),
            dynamic_shared: node.dynamic_shared(),
            pointers: node.pointers.as_ptr() as u64,
            extra: 0,
        };
        // Drivers tell both of a library's kernel, which is not documented (seen with 580.159.04).
        KernelParams { first, kernel: node.kernel, context: node.context }
    }
}

impl FillParams {
    pub(super) fn spec(&self, context: u64) -> NodeSpec<'static> {
        let &FillParams { start, pitch, value, element, width, height } = self;
        let element = u64::from(element);
        NodeSpec::Fill { spec: FillSpec { start, pitch, value, element, width, height }, context }
    }
}

impl From<&FillNode> for FillParams {
    fn from(node: &FillNode) -> FillParams {
        let FillSpec { start, pitch, value, element, width, height } = node.spec;
        FillParams { start, pitch, value, element: element as u32, width, height }
    }
}

impl HostParams {
    pub(super) fn spec(&self) -> NodeSpec<'static> {
        NodeSpec::Host { function: self.function as usize, data: self.data as usize }
    }
}

impl From<&HostNode> for HostParams {
    fn from(node: &HostNode) -> HostParams {
        HostParams { function: node.call.function as u64, data: node.call.data as u64 }
    }
}

impl AllocParams {
    /// Memory of a device; access from other devices is not simulated.
    pub(super) fn spec(&self) -> Outcome<NodeSpec<'static>> {
        if self.allocation != PINNED || self.location != LOCATION_DEVICE {
            return Err(CuError::INVALID_VALUE);
        }
        if self.handles != 0 {
            return Err(CuError::NOT_SUPPORTED);
        }
        for index in 0..self.access_count as usize {
            let [location, device, _] = In::<[u32; 3]>::from_address(self.access).at(index)?;
            if location != LOCATION_DEVICE || device != self.device as u32 {
                return Err(CuError::NOT_SUPPORTED);
            }
        }
        Ok(NodeSpec::Alloc { device: self.device, length: self.length })
    }
}

impl From<&AllocNode> for AllocParams {
    fn from(node: &AllocNode) -> AllocParams {
        AllocParams {
            allocation: PINNED,
            handles: 0,
            location: LOCATION_DEVICE,
            device: node.device as i32,
            rest: [0; 9],
            access: 0,
            access_count: 0,
            length: node.length,
            start: node.start,
        }
    }
}

/// A description of a copy, kept as it is for the queries.
pub(super) fn copy_spec(from: u64, context: u64) -> Outcome<NodeSpec<'static>> {
    let copy = In::<Copy3D>::from_address(from).get()?;
    let raw = In::<[u64; COPY_WORDS]>::from_address(from).get()?;
    Ok(NodeSpec::Copy { spec: copy.spec()?, raw: Some(Box::new(raw)), context })
}

/// The description of a copy node: as the program gave it, or made from what was captured.
pub(super) fn describe_copy(node: &CopyNode) -> [u64; COPY_WORDS] {
    node.raw.unwrap_or_else(|| Copy3D::from(&node.spec).words())
}

/// Reads a CUgraphNodeParams at an address, and its parameters if it is a kernel's.
pub(super) fn node_spec<'a>(address: u64, room: &'a mut Option<Passed>) -> Outcome<NodeSpec<'a>> {
    let params = In::<NodeParams>::from_address(address).get()?;
    let at = address + UNION;
    let word = params.of[0];
    Ok(match params.kind {
        0 => {
            let kernel = In::<KernelParams>::from_address(at).get()?;
            kernel.spec(room.insert(kernel.first.passed()))
        }
        1 => copy_spec(at + 16, params.of[1])?,
        2 => In::<FillParams>::from_address(at).get()?.spec(params.of[5]),
        3 => In::<HostParams>::from_address(at).get()?.spec(),
        4 => NodeSpec::Child(word),
        5 => NodeSpec::Empty,
        6 => NodeSpec::EventWait(word),
        7 => NodeSpec::EventRecord(word),
        10 => In::<AllocParams>::from_address(at).get()?.spec()?,
        11 => NodeSpec::Free(word),
        12 => super::super::words::node_spec(In::from_address(at))?,
        13 => {
            let [condition, kind, _, context] = [0, 1, 2, 3].map(|index| params.of[index]);
            let (kind, size) = (kind as u32, (kind >> 32) as u32);
            NodeSpec::Conditional { condition, kind, size, context }
        }
        8 | 9 => return Err(CuError::NOT_SUPPORTED),
        _ => return Err(CuError::INVALID_VALUE),
    })
}

/// Lays a structure of words into the union.
fn words<const N: usize>(values: [u64; N]) -> [u64; 29] {
    let mut all = [0; 29];
    all[..N].copy_from_slice(&values);
    all
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl From<&NodeKind> for NodeParams {
    fn from(kind: &NodeKind) -> NodeParams {
        let of = match kind {
            NodeKind::Kernel(kernel) => {
                let KernelParams { first, kernel, context } = KernelParams::from(&**kernel);
                let ([x, y, z], [block_x, block_y, block_z]) = (first.grid, first.block);
                words([
                    first.function,
                    pair(x, y),
                    pair(z, block_x),
                    pair(block_y, block_z),
                    first.dynamic_shared.into(),
                    first.pointers,
                    first.extra,
                    kernel,
                    context,
                ])
            }
            NodeKind::Copy(copy) => {
                let mut of = [0; 29];
                of[1] = copy.context;
                of[2..2 + COPY_WORDS].copy_from_slice(&describe_copy(copy));
                of
            }
            NodeKind::Fill(fill) => {
                let FillParams { start, pitch, value, element, width, height } =
                    FillParams::from(fill);
                words([start, pitch, pair(value, element), width, height, fill.context])
            }
            NodeKind::Host(host) => {
                let HostParams { function, data } = HostParams::from(host);
                words([function, data])
            }
            NodeKind::Child(handle)
            | NodeKind::EventWait(handle)
            | NodeKind::EventRecord(handle)
            | NodeKind::Free(handle) => words([*handle]),
            NodeKind::Words(node) => words(super::super::words::node_params(node).words()),
            NodeKind::Conditional(node) => {
                let bodies = node.bodies.as_ptr() as u64;
                let size = node.bodies.len() as u32;
                words([node.condition, pair(node.kind, size), bodies, node.context])
            }
            NodeKind::Empty => [0; 29],
            NodeKind::Alloc(alloc) => {
                let params = AllocParams::from(alloc);
                let mut of = words([PINNED.into(), pair(params.location, params.device as u32)]);
                of[13] = params.length;
                of[14] = params.start;
                of
            }
        };
        NodeParams { kind: kind.number(), reserved: [0; 3], of, reserved_end: 0 }
    }
}
