//! The source places of native frames: names, inlined functions, files and lines, from ELF symbols
//! and DWARF.
//!
//! A [`Symbolizer`] takes one return address at a time and opens files on demand: the image, and
//! its separate debug file by build id or by debug link. Opened files stay open.
//!
//! Invariants:
//! - Rather no answer than a wrong one: an image with another build id than the one recorded is not
//!   used, and a symbol stands only for the bytes that its size covers.
//! - A large library is not read as a whole: of an image without DWARF only its headers and its
//!   symbol table are read, 16 bytes a function are kept, and a name is read when it is asked for.
//!   The DWARF sections about functions and lines are read, up to [`LARGEST_DWARF`] bytes an image,
//!   and parsed a unit at a time.
//! - Files are read and not mapped: one that is truncated meanwhile gives no answer, where a mapping
//!   would end the process by a signal.
//! - Broken files give no answer and no panic.
//!
//! Where distributions strip a library and leave its symbols in `.gnu_debugdata` (MiniDebugInfo),
//! functions get their names from there.
//!
//! Deliberately absent: fetching debug files over the network, anything but 64-bit ELF, and the
//! choice of frames that a reader sees (the report makes it).
#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod image;
mod packed;
mod separate;
mod symbolizer;
mod table;

pub use symbolizer::{LARGEST_DWARF, Symbolizer, without_lines};
