//! What the program was in when it made the calls of a finding: NVTX ranges, and an operator of
//! PyTorch.
//!
//! Both tell where a reader is in the program and nothing else: fingerprints, folding, suppressions
//! and verdicts do not know them.

use crate::Report;
use streamsan_model::{CallStack, FindingAccess, NvtxRange, OpSeq, TorchOperator};
use streamsan_names::printable;

/// The innermost ranges that are named in words.
const NAMED: usize = 4;
/// The innermost ranges that are kept of an access.
const KEPT: usize = 16;
/// Characters of a name that are shown in words: frameworks put all arguments of a function into one.
const LONGEST: usize = 64;

impl Report<'_> {
    /// Tells of each access of a finding the ranges around its call, which `of` answers outermost
    /// first.
    #[must_use]
    pub fn in_ranges(mut self, mut of: impl FnMut(OpSeq) -> Vec<NvtxRange>) -> Self {
        for group in &self.groups {
            for g in [group.finding.first.op, group.finding.second.op] {
                if self.ranges.contains_key(&g) {
                    continue;
                }
                let mut ranges = of(g);
                ranges.drain(..ranges.len().saturating_sub(KEPT));
                if !ranges.is_empty() {
                    self.ranges.insert(g, ranges);
                }
            }
        }
        self
    }

    /// The innermost ranges around an access of a finding, outermost first.
    pub(crate) fn ranges_of(&self, g: OpSeq) -> &[NvtxRange] {
        self.ranges.get(&g).map_or(&[], Vec::as_slice)
    }

    /// What the program was in when it made the call of an access: its ranges, and the operator of
    /// PyTorch (`train/step 12/forward, aten::mul_Tensor`).
    pub(crate) fn around_in_words(&self, side: &FindingAccess) -> Option<String> {
        let operator = self.operator(side).map(|operator| operator.to_string());
        let around: Vec<String> =
            [self.ranges_in_words(side.op), operator].into_iter().flatten().collect();
        (!around.is_empty()).then(|| around.join(", "))
    }

    /// The operator of PyTorch in which the call of an access was made.
    pub(crate) fn operator(&self, side: &FindingAccess) -> Option<TorchOperator<'_>> {
        CallStack::of(&self.input.entities, side.stack)?.torch_operator()
    }

    /// `train/step 12/forward`: the innermost ranges around an access of a finding.
    fn ranges_in_words(&self, g: OpSeq) -> Option<String> {
        let ranges = self.ranges_of(g);
        let (outer, named) = ranges.split_at(ranges.len().saturating_sub(NAMED));
        let names: Vec<String> = named.iter().map(|range| shown(&range.name)).collect();
        let more = if outer.is_empty() { "" } else { ".../" };
        (!names.is_empty()).then(|| format!("{more}{}", names.join("/")))
    }
}

/// A name that hides nothing and is not too long.
fn shown(name: &str) -> String {
    if name.is_empty() {
        return "(no name)".to_owned();
    }
    let name = printable(name);
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.into_owned(),
    }
}
