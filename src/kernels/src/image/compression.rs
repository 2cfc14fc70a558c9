//! Unpacking code, in bounded memory.

use super::ImageError;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// The largest piece of code that is read, in bytes, packed or not. The largest that libraries
/// ship have some 100 MiB.
pub const MAX_CODE: u64 = 1 << 30;
/// The bytes of code that a packed byte may stand for, on average: code is packed to a fifth, and
/// tables that are nearly empty to less.
pub(super) const MOST_RATIO: u64 = 256;
/// Bytes of code that may be packed to anything.
pub(super) const SMALL_CODE: u64 = 16 << 20;

/// How an entry of a fat binary is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// One LZ4 block, without a frame.
    Lz4,
    /// One Zstandard frame.
    Zstd,
}

impl Compression {
    /// The usual name.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Lz4 => "LZ4",
            Self::Zstd => "Zstandard",
        }
    }

    /// The most that a packed byte can stand for. LZ4: a length byte stands for 255 (block format,
    /// "Matches"). Zstandard: the smallest block, of a header and a byte, stands for 128 KiB (RFC
    /// 8878, 3.1.1.2).
    fn ratio(self) -> u64 {
        match self {
            Self::None => 1,
            Self::Lz4 => 255,
            Self::Zstd => (128 << 10) / 4 + 1,
        }
    }
}

/// Unpacks code that is `claimed` bytes long when it is unpacked.
///
/// # Errors
/// When the claim is impossible, above [`MAX_CODE`] or beyond what code is packed to, and when the data does not unpack to it.
pub(super) fn unpack(
    compression: Compression,
    packed: &[u8],
    claimed: u64,
) -> Result<Vec<u8>, ImageError> {
    let length = packed.len() as u64;
    let sane = length.saturating_mul(MOST_RATIO).clamp(SMALL_CODE, MAX_CODE);
    let limit = length.saturating_mul(compression.ratio()).min(sane);
    if claimed > limit {
        return Err(ImageError::TooLarge { claimed, limit });
    }
    let damaged = |reason: String| ImageError::Packed { compression, reason };
    let length = claimed as usize;
    let code = match compression {
        Compression::None => packed.to_vec(),
        Compression::Lz4 => {
            lz4_flex::block::decompress(packed, length).map_err(|e| damaged(e.to_string()))?
        }
        Compression::Zstd => {
            // A frame of one segment has a window as large as its content.
            let window = claimed.max(8 << 20);
            let decoder = StreamingDecoder::new_with_max_window_size(packed, window)
                .map_err(|e| damaged(e.to_string()))?;
            let mut code = Vec::new();
            let mut bounded = decoder.take(claimed.saturating_add(1));
            bounded.read_to_end(&mut code).map_err(|e| damaged(e.to_string()))?;
            code
        }
    };
    if code.len() != length {
        return Err(damaged(format!("{length} bytes were promised, {} are there", code.len())));
    }
    Ok(code)
}
