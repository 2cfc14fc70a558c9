//! Values for the tests of this crate.

use crate::{
    Access, AllocationId, Basis, ByteRange, Confidence, ConflictKind, Extent, Finding,
    FindingAccess, Fingerprint, Mode, OpSeq, RaceClass, Severity, StreamId,
};

/// A race of two exact writes.
pub(crate) fn finding() -> Finding {
    let range = ByteRange::new(0, 64);
    let side = |op: u64, stream: u32| FindingAccess {
        op: OpSeq(op),
        stream: Some(StreamId(stream)),
        api: "cuMemsetD8Async".to_owned(),
        kernel: None,
        access: Access {
            allocation: AllocationId(0),
            extent: Extent::Range(range),
            mode: Mode::Write,
            basis: Basis::Exact,
        },
        stack: None,
    };
    Finding {
        fingerprint: Fingerprint::of(["test"]),
        severity: Severity::Race,
        class: RaceClass::MissingWait,
        kind: ConflictKind::WriteAfterWrite,
        confidence: Confidence::Certain,
        allocation: AllocationId(0),
        overlap: range,
        first: side(1, 0),
        second: side(2, 1),
        knows: None,
        nearest: None,
        masked_by: None,
        proposed_edge: None,
    }
}
