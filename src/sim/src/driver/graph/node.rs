//! The work of a graph's nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::copy::{Copy, CopySpec};
use super::super::fill::{Fill, FillSpec};
use super::super::host_call::HostCall;
use super::super::launch::KernelTemplate;
use super::super::words::WordOp;
use super::conditional::ConditionalNode;

/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE.
const COOPERATIVE: u32 = 2;
/// Words of a CUDA_MEMCPY3D.
pub(crate) const COPY_WORDS: usize = 25;

/// A node of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    /// The graph that holds it.
    pub(crate) graph: u64,
    pub(crate) kind: NodeKind,
}

/// The work of a node.
#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Kernel(Box<KernelNode>),
    Copy(Box<CopyNode>),
    Fill(FillNode),
    Host(HostNode),
    /// A graph that belongs to the node.
    Child(u64),
    Empty,
    EventWait(u64),
    EventRecord(u64),
    Alloc(AllocNode),
    /// The start of the allocation that it frees.
    Free(u64),
    Words(WordsNode),
    Conditional(ConditionalNode),
}

impl NodeKind {
    /// CUgraphNodeType.
    pub(crate) fn number(&self) -> u32 {
        match self {
            NodeKind::Kernel(_) => 0,
            NodeKind::Copy(_) => 1,
            NodeKind::Fill(_) => 2,
            NodeKind::Host(_) => 3,
            NodeKind::Child(_) => 4,
            NodeKind::Empty => 5,
            NodeKind::EventWait(_) => 6,
            NodeKind::EventRecord(_) => 7,
            NodeKind::Alloc(_) => 10,
            NodeKind::Free(_) => 11,
            NodeKind::Words(_) => 12,
            NodeKind::Conditional(_) => 13,
        }
    }

    /// The context that a failure of it poisons; 0 for none.
    pub(super) fn context(&self) -> u64 {
        match self {
            NodeKind::Kernel(kernel) => kernel.context,
            NodeKind::Copy(copy) => copy.context,
            NodeKind::Fill(fill) => fill.context,
            NodeKind::Alloc(alloc) => alloc.context,
            NodeKind::Words(words) => words.context,
            NodeKind::Conditional(conditional) => conditional.context,
            NodeKind::Host(_)
            | NodeKind::Child(_)
            | NodeKind::Empty
            | NodeKind::EventWait(_)
            | NodeKind::EventRecord(_)
            | NodeKind::Free(_) => 0,
        }
    }
}

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct KernelNode {
    pub(in crate::driver) template: KernelTemplate,
    /// The function, whichever handle the program gave: of a library's kernel the one that it is in
    /// the node's context.
    pub(crate) function: u64,
    /// The kernel of a library that it is, 0 for none.
    pub(crate) kernel: u64,
    pub(crate) context: u64,
    /// Addresses of the parameters in the node's own copy of them, for the program to read.
    pub(crate) pointers: Arc<[u64]>,
    /// Attributes by number.
    pub(crate) attributes: BTreeMap<u32, [u32; 16]>,
}

impl KernelNode {
    pub(in crate::driver) fn new(
        template: KernelTemplate,
        function: u64,
        kernel: u64,
        context: u64,
    ) -> KernelNode {
        let base = template.parameters.as_ptr() as u64;
        let pointers = template.layout().iter().map(|(offset, _)| base + u64::from(*offset));
        let pointers = pointers.collect();
        let attributes = BTreeMap::new();
        KernelNode { template, function, kernel, context, pointers, attributes }
    }

    pub(crate) fn grid(&self) -> [u32; 3] {
        self.template.grid
    }

    pub(crate) fn block(&self) -> [u32; 3] {
        self.template.block
    }

    /// Bytes of dynamic shared memory.
    pub(crate) fn dynamic_shared(&self) -> u32 {
        self.template.dynamic_shared
    }

    /// Sets a launch attribute, and what it changes of the launch.
    pub(in crate::driver) fn set_attribute(&mut self, attribute: u32, value: [u32; 16]) {
        if attribute == COOPERATIVE {
            self.template.cooperative = value[0] != 0;
        }
        self.attributes.insert(attribute, value);
    }
}

/// A copy.
#[derive(Clone, Debug)]
pub(crate) struct CopyNode {
    pub(in crate::driver) copy: Option<Copy>,
    pub(crate) spec: CopySpec,
    /// The parameters as the program gave them, if it gave them in this form.
    pub(crate) raw: Option<[u64; COPY_WORDS]>,
    pub(crate) context: u64,
}

/// A memset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillNode {
    pub(in crate::driver) fill: Fill,
    pub(crate) spec: FillSpec,
    pub(crate) context: u64,
}

/// A host function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostNode {
    pub(crate) call: HostCall,
}

/// An allocation, which has its address from the time that the node is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocNode {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
    pub(crate) context: u64,
}

/// Stream memory operations.
#[derive(Clone, Debug)]
pub(crate) struct WordsNode {
    pub(crate) ops: Arc<[WordOp]>,
    /// The operations as the program gave them, for it to read.
    pub(crate) raw: Arc<[[u64; 6]]>,
    pub(crate) context: u64,
}
