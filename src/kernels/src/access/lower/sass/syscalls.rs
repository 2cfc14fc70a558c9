//! Functions of the driver that kernels call and whose code is not in their image.
//!
//! Stage: lowering. Code for compute capability 12.0 calls one of them for a copy to the shared
//! memory of another block. The registers of the arguments were found by compiling such copies: the
//! destination is in `R4`, the source in `R6`, the size of a copy without a tensor map in `R8`.
//!
//! Invariant: a function that is not listed here may touch anything.

use smallvec::smallvec;

use super::constant_banks::register_of;
use super::operation::{AddressPart, Bytes, Lifted, LiftedSource, Operation, SourceValue};
use crate::access::summary::result::Touch;
use crate::sass::Register;
use streamsan_model::WordKind;

/// Functions that touch no memory of the program except their own: the printf buffer and the device
/// heap.
const HARMLESS: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

/// The effect of a called function on memory; the outer `None` where it is not known.
pub(super) fn called(name: &str, place: u32) -> Option<Option<Lifted>> {
    if HARMLESS.contains(&name) {
        return Some(None);
    }
    let what = name.strip_prefix("__cuda_syscall_cp_async_bulk_")?.strip_suffix("unicast")?;
    let tensor = what.strip_prefix("tensor_").and_then(|rest| rest.strip_suffix("d_tile_"));
    let (kind, bytes, size) = match (what, tensor) {
        ("", _) => (WordKind::Pointer, Bytes::Counted, Some(8)),
        (_, Some("1" | "2" | "3" | "4" | "5")) => (WordKind::TensorMap, Bytes::Unknown, None),
        _ => return None,
    };
    let source = |register| {
        let register = register_of(Register::General(register), 0);
        LiftedSource::plain(register.map_or(SourceValue::Other, SourceValue::Register))
    };
    let operation = Operation::Access {
        touch: Touch::Read,
        kind,
        bytes,
        terms: smallvec![AddressPart::Pair],
        offset: 0,
        partly: bytes == Bytes::Unknown,
    };
    let sources = [6, 7].into_iter().chain(size).map(source).collect();
    Some(Some(Lifted { operation, results: smallvec![], sources, place }))
}
