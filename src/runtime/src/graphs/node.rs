//! The work of a node, as bytes for its record.

use core::slice;

use streamsan_wire::node_kind::{BATCH_MEM_OP, KERNEL, SEMAPHORE_SIGNAL, SEMAPHORE_WAIT};
use streamsan_wire::{Body, GraphPart, NodeTag, RecordKind};

use crate::attach::Attachment;
use crate::capture::{Params, params_of};
use crate::thread::{Outgoing, Thread};

/// Words of `CUDA_KERNEL_NODE_PARAMS`: the function, the parameters, since the second version the
/// kernel. A program gives one of the two, and a kernel beside a function does not count; the driver
/// tells both of a library's kernel.
pub(super) const FUNCTION: usize = 0;
const KERNEL_PARAMS: usize = 5;
const EXTRA: usize = 6;
pub(super) const KERNEL_HANDLE: usize = 7;

/// `sizeof(CUstreamBatchMemOpParams)`, `sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS)`.
const MEM_OP: usize = 48;
const SEMAPHORE_PARAMS: usize = 144;

/// Most elements of a node's array.
const MOST_ITEMS: usize = 4096;

/// A node to be published.
pub(super) struct Node<'a> {
    /// Number of its graph, and its position there.
    pub(super) place: (u32, u32),
    pub(super) kind: i32,
    pub(super) handle: u64,
    /// Its parameter structure, `None` if the driver did not tell.
    pub(super) structure: Option<&'a [u64]>,
    /// Numbers of its bodies.
    pub(super) bodies: &'a [u64],
    /// Whether kernels may change it.
    pub(super) updatable: bool,
}

impl Node<'_> {
    /// Publishes the node, and before it a Kernel record if its kernel is new. Answers whether
    /// everything of the node is in its record.
    pub(super) fn publish(&self, thread: &Thread, attachment: &Attachment) -> bool {
        let words = self.structure.unwrap_or_default();
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        let nothing: &[u8] = &[];
        let (mut items, mut handles) = (nothing, nothing);
        let mut params = Params::None;
        let mut complete = self.structure.is_some();
        // SAFETY: the structure is the driver's own or one that the program gives to the driver;
        // its arrays are as long as it says.
        let array = |at: u64, count: usize, element: usize| unsafe {
            let readable = at != 0 && count <= MOST_ITEMS;
            readable.then(|| slice::from_raw_parts(at as *const u8, count * element))
        };
        match self.kind {
            KERNEL => {
                // The handle that a launch of the same kernel has: a library's kernel before its
                // function, of which nobody was told yet.
                let function = match word(KERNEL_HANDLE) {
                    0 => word(FUNCTION),
                    kernel => kernel,
                };
                if function != 0 {
                    let (separate, packed) = (word(KERNEL_PARAMS), word(EXTRA));
                    params = params_of(thread, attachment, function, separate, packed);
                }
            }
            BATCH_MEM_OP => match array(word(2), word(1) as u32 as usize, MEM_OP) {
                Some(all) => items = all,
                None => complete &= word(1) as u32 == 0,
            },
            SEMAPHORE_SIGNAL | SEMAPHORE_WAIT => {
                let count = word(2) as u32 as usize;
                match (array(word(0), count, 8), array(word(1), count, SEMAPHORE_PARAMS)) {
                    (Some(objects), Some(all)) => (handles, items) = (objects, all),
                    _ => complete &= count == 0,
                }
            }
            _ => {}
        }
        let bodies = self.bodies;
        let blob = |len: usize| if len == 0 { 0 } else { Body::blob_bytes(len) };
        let bytes = |params: &Params| {
            GraphPart::NODE_BYTES
                + blob(size_of_val(words))
                + blob(items.len())
                + blob(handles.len())
                + blob(size_of_val(bodies))
                + params.bytes()
        };
        let largest = thread.largest_body(attachment);
        if bytes(&params) > largest {
            params = Params::None;
            complete = false;
        }
        if bytes(&params) > largest {
            (items, handles) = (nothing, nothing);
        }
        let record = Outgoing { kind: RecordKind::Graph, depth: 0, api: 0, body: bytes(&params) };
        let published = thread.publish(attachment, record, |body| {
            let flags = if complete { GraphPart::READABLE } else { 0 }
                | if self.updatable { GraphPart::UPDATABLE } else { 0 };
            GraphPart::node(body, self.place, self.kind, flags, self.handle);
            let mut put = |tag: u32, bytes: &[u8]| {
                if !bytes.is_empty() {
                    // SAFETY: a live slice.
                    unsafe { body.blob(tag, bytes.as_ptr(), bytes.len()) };
                }
            };
            put(NodeTag::PARAMS, as_bytes(words));
            put(NodeTag::ITEMS, items);
            put(NodeTag::HANDLES, handles);
            put(NodeTag::BODIES, as_bytes(bodies));
            params.write(body);
        });
        complete && published != 0
    }
}

fn as_bytes(words: &[u64]) -> &[u8] {
    // SAFETY: words are bytes without padding.
    unsafe { slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}
