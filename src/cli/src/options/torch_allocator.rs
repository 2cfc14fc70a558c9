//! Which allocator PyTorch takes its memory from.

use std::str::FromStr;

/// An allocator of PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TorchAllocator {
    /// The driver's stream-ordered one: each tensor is an allocation of its own.
    Async,
}

impl TorchAllocator {
    /// PyTorch's name of the allocator.
    pub(crate) const fn backend(self) -> &'static str {
        match self {
            Self::Async => "cudaMallocAsync",
        }
    }
}

impl FromStr for TorchAllocator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "async" => Ok(Self::Async),
            _ => Err("the only choice is async".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TorchAllocator;

    #[test]
    fn only_async_is_known() {
        assert_eq!("async".parse(), Ok(TorchAllocator::Async));
        assert!("native".parse::<TorchAllocator>().is_err());
    }
}
