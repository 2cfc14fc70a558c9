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
//!   DWARF is mapped, and parsed a unit at a time.
//! - Broken files give no answer and no panic.
//!
//! Deliberately absent: fetching debug files over the network, `.gnu_debugdata`, anything but
//! 64-bit ELF, and what a stack means to a reader (that is the report's business).
#![forbid(unsafe_code)]

mod elf;
mod image;
mod separate;
mod symbolizer;
mod table;

pub use symbolizer::Symbolizer;
