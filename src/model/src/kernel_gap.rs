//! The reason why a kernel's accesses are not known from its code.

/// Kinds of missing knowledge about launches or images that are only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelGap {
    /// The kernel may touch memory that none of its words tells.
    MayTouchAnything,
    /// The kernel's code was not found or not read.
    NotRead,
    /// The kernel is machine code, and there was no disassembler.
    NoDisassembler,
    /// The code became known after too many launches to keep them all.
    NotLookedAtAgain,
    /// An image could not be kept: the disk is full, or the bytes are no image.
    ImageNotKept,
}

impl KernelGap {
    /// All gaps, in the order of their stored codes.
    pub const ALL: [Self; 5] = [
        Self::MayTouchAnything,
        Self::NotRead,
        Self::NoDisassembler,
        Self::NotLookedAtAgain,
        Self::ImageNotKept,
    ];

    /// The words of reports.
    pub const fn description(self) -> &'static str {
        match self {
            Self::MayTouchAnything => "may touch anything",
            Self::NotRead => "code not read",
            Self::NoDisassembler => "no nvdisasm",
            Self::NotLookedAtAgain => "known too late",
            Self::ImageNotKept => "image not kept",
        }
    }
}
