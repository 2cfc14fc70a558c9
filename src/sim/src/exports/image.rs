//! Reading code images from the program.

use std::ffi::{CStr, c_char};
use std::fs;

use super::args::{In, Text};
use crate::driver::{FATBIN_MAGIC, Refusal};
use crate::errors::{CuError, Outcome};

/// Wrapper around a fat binary, as compilers put it into a program.
const WRAPPER_MAGIC: u32 = 0x4662_43b1;
const ELF_MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");

/// An image in memory: PTX text that ends with NUL, a fat binary, its wrapper, or machine code.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(super) struct Image(*const u8);

impl Image {
    pub(super) fn read(self) -> Outcome<Vec<u8>> {
        self.unwrap(true)
    }

    fn unwrap(self, wrapped: bool) -> Outcome<Vec<u8>> {
        if self.0.is_null() {
            return Err(CuError::INVALID_VALUE);
        }
        // SAFETY: not null; the interface has the program pass a whole image. A text is at least
        // one byte, and it is read byte by byte until four bytes or its end; a container states
        // its own size behind its magic number.
        unsafe {
            let mut magic = [0; 4];
            for (at, byte) in magic.iter_mut().enumerate() {
                *byte = *self.0.add(at);
                if *byte == 0 {
                    break;
                }
            }
            match u32::from_le_bytes(magic) {
                WRAPPER_MAGIC if wrapped => {
                    let inner = self.0.add(8).cast::<*const u8>().read_unaligned();
                    Image(inner).unwrap(false)
                }
                FATBIN_MAGIC => {
                    let header = self.0.add(6).cast::<u16>().read_unaligned();
                    let size = self.0.add(8).cast::<u64>().read_unaligned();
                    let total = usize::try_from(size).ok().map(|size| size + usize::from(header));
                    let total = total.filter(|total| *total < 1 << 40);
                    let total = total.ok_or(CuError::INVALID_IMAGE)?;
                    Ok(std::slice::from_raw_parts(self.0, total).to_vec())
                }
                ELF_MAGIC => Ok(magic.to_vec()),
                _ => Ok(CStr::from_ptr(self.0.cast::<c_char>()).to_bytes().to_vec()),
            }
        }
    }
}

/// An image in a file.
pub(super) fn read_file(path: Text) -> Outcome<Vec<u8>> {
    let bytes = fs::read(path.get()?).map_err(|_| CuError::FILE_NOT_FOUND)?;
    if bytes.starts_with(&FATBIN_MAGIC.to_le_bytes()) {
        return Ok(bytes);
    }
    // A text may or may not be terminated in its file.
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = !bytes.starts_with(b"\x7fELF");
    Ok(if text { bytes[..length].to_vec() } else { bytes })
}

/// Options of a load (CUjit_option) and their values.
#[derive(Clone, Copy, Debug)]
pub(super) struct JitOptions {
    pub(super) count: u32,
    pub(super) names: In<u32>,
    pub(super) values: In<u64>,
}

const ERROR_LOG_BUFFER: u32 = 5;
const ERROR_LOG_SIZE: u32 = 6;

impl JitOptions {
    pub(super) const NONE: JitOptions = JitOptions { count: 0, names: In::NULL, values: In::NULL };

    pub(super) fn check(self) -> Outcome {
        if self.count > 0 && (self.names.is_null() || self.values.is_null()) {
            return Err(CuError::INVALID_VALUE);
        }
        Ok(())
    }

    /// Writes the reason of a refusal into the program's error log, if it gave one.
    pub(super) fn refuse(self, refusal: &Refusal) -> CuError {
        let mut buffer = None;
        let mut room = 0;
        for index in 0..self.count as usize {
            match (self.names.at(index), self.values.at(index)) {
                (Ok(ERROR_LOG_BUFFER), Ok(address)) if address != 0 => buffer = Some(address),
                (Ok(ERROR_LOG_SIZE), Ok(size)) => room = size as u32 as usize,
                _ => {}
            }
        }
        if let Some(buffer) = buffer.filter(|_| room > 0) {
            let length = refusal.message.len().min(room - 1);
            let buffer = buffer as *mut u8;
            // SAFETY: the program gave the address and size of its buffer in the options; at most
            // `room` bytes are written.
            unsafe {
                std::ptr::copy_nonoverlapping(refusal.message.as_ptr(), buffer, length);
                buffer.add(length).write(0);
            }
        }
        refusal.status
    }
}
