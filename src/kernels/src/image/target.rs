//! Targets of code, and the code that a device can run.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Compute capability of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComputeCapability {
    /// 9 of 9.0.
    pub major: u16,
    /// 0 of 9.0.
    pub minor: u16,
}

impl ComputeCapability {
    /// From the number in `sm_90`: the last digit is the minor version.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        let major = u16::try_from(number / 10).ok()?;
        (major > 0).then_some(Self { major, minor: (number % 10) as u16 })
    }

    /// The number in `sm_90`.
    #[must_use]
    pub fn number(self) -> u32 {
        u32::from(self.major) * 10 + u32::from(self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number())
    }
}

/// How far code of one target reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Variant {
    /// No letter.
    Portable,
    /// `f`: features of a family of devices.
    Family,
    /// `a`: features of one device.
    Specific,
}

impl Variant {
    /// The letter behind the number.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Portable => "",
            Self::Family => "f",
            Self::Specific => "a",
        }
    }
}

/// The target of code: the `90a` of `sm_90a` and `compute_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Target {
    /// The device, or the oldest of them.
    pub capability: ComputeCapability,
    /// How far it reaches.
    pub variant: Variant,
}

impl Target {
    /// Whether machine code for this target runs on a device: same major version and no newer
    /// minor version; `a` on its very device only; `f` on its family, which is the devices of the
    /// same major version from it on.
    ///
    /// Source: CUDA C++ Programming Guide, "Binary Compatibility" and "Feature Set Compiler
    /// Targets"; NVCC manual, "GPU Feature List". The guide excludes integrated devices from
    /// binary compatibility; which those are no image tells, so that is not modelled.
    #[must_use]
    pub fn runs_on(self, device: ComputeCapability) -> bool {
        match self.variant {
            Variant::Specific => self.capability == device,
            Variant::Family | Variant::Portable => {
                self.capability.major == device.major && self.capability.minor <= device.minor
            }
        }
    }

    /// Whether the driver can compile PTX of this target for a device: any that is not older; `a`
    /// and `f` as in [`Target::runs_on`].
    ///
    /// Source: CUDA C++ Programming Guide, "PTX Compatibility" and "Feature Set Compiler Targets".
    #[must_use]
    pub fn compiles_for(self, device: ComputeCapability) -> bool {
        match self.variant {
            Variant::Portable => self.capability <= device,
            Variant::Family | Variant::Specific => self.runs_on(device),
        }
    }
}

impl fmt::Display for Target {
    /// As in `sm_90a`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.capability, self.variant.suffix())
    }
}

/// A text that names no target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a GPU architecture such as sm_90, sm_90a or compute_80")]
pub struct TargetError;

impl FromStr for Target {
    type Err = TargetError;

    /// Reads `sm_90a` or `compute_90a`.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let number = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"));
        let number = number.ok_or(TargetError)?;
        let (number, variant) = match number.as_bytes().last() {
            Some(b'a') => (&number[..number.len() - 1], Variant::Specific),
            Some(b'f') => (&number[..number.len() - 1], Variant::Family),
            _ => (number, Variant::Portable),
        };
        let digits = (2..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
        let number = digits.then(|| number.parse().ok()).flatten().ok_or(TargetError)?;
        let capability = ComputeCapability::from_number(number).ok_or(TargetError)?;
        Ok(Self { capability, variant })
    }
}
