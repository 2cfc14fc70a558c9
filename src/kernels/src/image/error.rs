//! Why an image cannot be read.

use super::Compression;

/// Why an image, or a piece of one, cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The content is of none of the known forms.
    #[error("it is neither PTX, a cubin, a fat binary, nor a program that contains one")]
    Unrecognized,
    /// A host program without GPU code.
    #[error("it is a program or library that contains no GPU code")]
    NoCode,
    /// An ELF file that is not for a 64-bit little-endian machine.
    #[error(
        "it is an ELF file of a class that GPU code is not kept in: 64 bits little-endian only"
    )]
    Class,
    /// Machine code was expected.
    #[error("it is not machine code for a GPU")]
    NotCubin,
    /// Something reaches past the end of the image.
    #[error("it is cut off: {what} at byte {offset} reaches past the end")]
    Truncated {
        /// The part that is incomplete.
        what: &'static str,
        /// In bytes from the start of the image.
        offset: u64,
    },
    /// A field has a value that it cannot have.
    #[error("it is damaged: {what} at byte {offset}")]
    Damaged {
        /// The field and what is wrong with it.
        what: &'static str,
        /// In bytes from the start of the image, or of the section that `what` names.
        offset: u64,
    },
    /// The tables of an ELF file contradict each other.
    #[error("it is damaged: {0}")]
    Elf(String),
    /// A piece of code that is, or says it is, larger than what is unpacked.
    #[error(
        "a piece of code of {claimed} bytes is refused; {limit} are taken for its packed form at most"
    )]
    TooLarge {
        /// Bytes.
        claimed: u64,
        /// Bytes.
        limit: u64,
    },
    /// Packed code that does not unpack to what its header says.
    #[error("{} data is damaged: {reason}", compression.description())]
    Packed {
        /// How it is packed.
        compression: Compression,
        /// In the words of the decoder.
        reason: String,
    },
    /// Machine code does not describe the parameters of a kernel.
    #[error("the machine code does not describe the parameters of {0}")]
    NoParameters(String),
}

impl From<object::Error> for ImageError {
    fn from(error: object::Error) -> Self {
        Self::Elf(error.to_string())
    }
}
