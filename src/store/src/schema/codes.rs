//! Enumerations as stored: the code of a value is its position in the list.

use crate::action::ACTIONS;
use streamsan_model::{
    Axis, Basis, CodeSource, Confidence, ConflictKind, EdgeKind, MemoryKind, Mode, NvtxKind,
    RaceClass, Severity, StreamKind, Tier, WordKind,
};

/// The kinds of counts in rows of `coverage`.
pub(crate) const COVERAGE_KINDS: [&str; 31] = [
    "calls recorded",
    "calls harmless",
    "calls not understood",
    "records dropped",
    "ambiguous pairs of calls",
    "incomplete: not attached",
    "incomplete: records dropped",
    "incomplete: calls not understood",
    "incomplete: launches with unknown parameters",
    "incomplete: trace cut off",
    "incomplete: operations past the trace limit",
    "incomplete: trace not written",
    "incomplete: pointers in memory followed",
    "launches that may touch anything",
    "launches of kernels not read",
    "launches of kernels not read for lack of nvdisasm",
    "launches not looked at again",
    "images not kept",
    "operations on host memory",
    "operations on host memory fenced",
    "operations on host memory fenced in part",
    "ranges of host memory not fenced",
    "allocations that are no longer fenced",
    "host accesses not watched",
    "launches measured whole",
    "launches measured in part",
    "launches selected and not measured",
    "launches measured that follow pointers in memory",
    "launches not measured, by reason",
    "processes in which nothing was measured, by reason",
    "launches that touched bytes which their code was read not to touch",
];

/// Every enumeration with its words, in the order of their codes.
pub(crate) fn enumerations() -> Vec<(&'static str, Vec<&'static str>)> {
    fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> Vec<&'static str> {
        all.iter().map(|&x| word(x)).collect()
    }
    vec![
        ("action", ACTIONS.to_vec()),
        ("axis", words(&Axis::ALL, Axis::description)),
        ("basis", words(&Basis::ALL, Basis::description)),
        ("class", words(RaceClass::ALL, RaceClass::description)),
        ("code source", words(&CodeSource::ALL, CodeSource::description)),
        ("confidence", words(Confidence::ALL, Confidence::description)),
        ("conflict kind", words(ConflictKind::ALL, ConflictKind::description)),
        ("coverage", COVERAGE_KINDS.to_vec()),
        ("edge kind", words(&EdgeKind::ALL, EdgeKind::description)),
        ("memory kind", words(&MemoryKind::ALL, MemoryKind::description)),
        ("mode", words(&Mode::ALL, Mode::description)),
        ("node action", crate::part::NODE_ACTIONS.to_vec()),
        ("nvtx kind", words(&NvtxKind::ALL, NvtxKind::description)),
        ("part kind", crate::part::PART_KINDS.to_vec()),
        ("severity", words(Severity::ALL, Severity::description)),
        ("stream kind", words(&StreamKind::ALL, StreamKind::description)),
        ("tier", words(&[Tier::Documented, Tier::Incidental], Tier::description)),
        ("word kind", words(&WordKind::ALL, WordKind::description)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writers store `value as i64`, readers look the code up in the list.
    #[test]
    fn codes_are_positions() {
        macro_rules! check {
            ($($all:expr),*) => {
                $(for (position, &value) in $all.iter().enumerate() {
                    assert_eq!(value as usize, position, "{value:?}");
                })*
            };
        }
        check!(
            Basis::ALL,
            CodeSource::ALL,
            RaceClass::ALL,
            Confidence::ALL,
            ConflictKind::ALL,
            EdgeKind::ALL,
            MemoryKind::ALL,
            Mode::ALL,
            NvtxKind::ALL,
            Severity::ALL,
            StreamKind::ALL,
            WordKind::ALL,
            [Tier::Documented, Tier::Incidental]
        );
    }
}
