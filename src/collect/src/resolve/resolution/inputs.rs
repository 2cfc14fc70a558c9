//! The contents of the call's pointer parameters.

use super::Resolution;

impl Resolution<'_> {
    /// The list that parameter `index` points to, of as many elements of `element` bytes as
    /// parameter `count` says. `None`, after it is counted, where it was not recorded.
    pub(in crate::resolve) fn input_list(
        &mut self,
        index: usize,
        count: usize,
        element: usize,
    ) -> Option<Box<[u8]>> {
        let expected = self.call.arg(count).saturating_mul(element as u64);
        let signature = self.call.api.signature();
        let list = if signature.inputs > 1 {
            self.call.input(index)
        } else {
            self.call.pointee.as_deref()
        };
        let list: Box<[u8]> = list.unwrap_or_default().into();
        if list.len() as u64 == expected {
            return Some(list);
        }
        if self.call.succeeded() {
            let api = self.call.api.name();
            self.gaps.not_understood(&format!("{api} (list too long to record)"));
        }
        None
    }

    /// As [`Resolution::input_list`], of words.
    pub(in crate::resolve) fn input_words(
        &mut self,
        index: usize,
        count: usize,
    ) -> Option<Vec<u64>> {
        let list = self.input_list(index, count, 8)?;
        let words = list.chunks_exact(8).filter_map(|word| word.try_into().ok());
        Some(words.map(u64::from_le_bytes).collect())
    }
}
