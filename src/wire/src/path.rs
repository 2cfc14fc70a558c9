//! Paths on the stack: the runtime must not allocate in a program's process.

use core::ffi::CStr;
use core::fmt;

/// A NUL-terminated string of bounded length, written with `write!`.
pub struct PathBuffer {
    bytes: [u8; Self::CAPACITY],
    len: usize,
}

impl PathBuffer {
    /// Longest path that is handled, its NUL included.
    pub const CAPACITY: usize = 1024;

    /// Formats a path; `None` if it is too long.
    pub fn format(args: fmt::Arguments<'_>) -> Option<Self> {
        let mut buffer = Self { bytes: [0; Self::CAPACITY], len: 0 };
        fmt::write(&mut buffer, args).ok()?;
        Some(buffer)
    }

    /// The path as a C string.
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Write for PathBuffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        if end >= Self::CAPACITY || text.contains('\0') {
            return Err(fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

impl fmt::Debug for PathBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
