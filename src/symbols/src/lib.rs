//! Where in the source a frame of a native stack lies: names, inlined functions, files and lines,
//! from ELF symbols and DWARF.
//!
//! A [`Symbolizer`] is asked for one return address at a time and opens what it needs on the way:
//! the image, and its separate debug file by build id or by debug link. What is opened stays open.
//!
//! Invariants:
//! - Rather no answer than a wrong one: an image with another build id than the one recorded is not
//!   used, and a symbol stands only for the bytes that its size covers.
//! - A large library is not read as a whole: of an image without DWARF only its headers and its
//!   symbol table are read, 16 bytes a function are kept, and a name is read when it is asked for.
//!   Of DWARF the sections that tell of functions and lines are read, up to [`LARGEST_DWARF`] bytes
//!   an image, and parsed a unit at a time.
//! - Files are read and not mapped: one that is truncated meanwhile gives no answer, where a mapping
//!   would end the process by a signal.
//! - Broken files give no answer and no panic.
//!
//! Where distributions strip a library and leave its symbols in `.gnu_debugdata` (MiniDebugInfo),
//! functions are named by that.
//!
//! Deliberately absent: fetching debug files over the network, anything but 64-bit ELF, and what a
//! stack means to a reader (that is the report's business).
#![forbid(unsafe_code)]

mod dwarf;
mod elf;
mod image;
mod packed;
mod separate;
mod symbolizer;
mod table;

pub use symbolizer::{LARGEST_DWARF, Symbolizer, without_lines};
