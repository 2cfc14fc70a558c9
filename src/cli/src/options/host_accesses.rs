//! Whether host memory is fenced while the device uses it.

/// The treatment of raw loads and stores of host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HostAccesses {
    /// Memory is fenced by page protection while the device uses it
    #[default]
    Fence,
    /// Nothing: they are not seen
    Off,
}

impl HostAccesses {
    pub(crate) fn are_fenced(self) -> bool {
        self == Self::Fence
    }
}
