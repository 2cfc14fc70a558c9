//! Images: every form in which GPU code reaches the driver or lies in a file.
//!
//! [`Image::read`] takes PTX text, a cubin, a fat binary, or a host program that contains fat
//! binaries, and tells the pieces of code in it. [`select()`] names the piece that the driver would
//! load on a device, [`Cubin`] the kernels of machine code and where their parameters lie.
//!
//! Nothing here trusts its input: what is damaged is an [`ImageError`], never a panic, and what is
//! unpacked is bounded by what its packed form can hold and by [`MAX_CODE`].
//!
//! Deliberately absent: images that are known by their address only (the runtime finds their end),
//! LTO intermediate code, 32-bit machine code, and static archives.

mod bytes;
mod compression;
mod cubin;
mod elf;
mod error;
mod fatbin;
mod file;
mod listing;
mod parameters;
mod select;
mod target;

pub use compression::{Compression, MAX_CODE};
pub use cubin::{Cubin, CubinKernel};
pub use error::ImageError;
pub use fatbin::{CodeKind, Container, Entry};
pub use file::Image;
pub use listing::{ListedKernel, Listing, Problem, Source, Unreadable};
pub(crate) use parameters::branch_targets;
pub use parameters::{Parameter, ParameterLayout};
pub use select::select;
pub use target::{ComputeCapability, Target, TargetError, Variant};
