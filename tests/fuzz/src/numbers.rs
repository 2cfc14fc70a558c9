//! Numbers out of an input, or without one.

/// Takes numbers from the front of an input; zeros behind its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl<'a> Numbers<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub(crate) fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// A part, as long as two bytes in front of it say, or as there is.
    pub(crate) fn part(&mut self) -> &'a [u8] {
        let length = usize::from(self.half()).min(self.0.len());
        let (part, rest) = self.0.split_at(length);
        self.0 = rest;
        part
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        let there = self.0.len().min(N);
        bytes[..there].copy_from_slice(&self.0[..there]);
        self.0 = &self.0[there..];
        bytes
    }
}
