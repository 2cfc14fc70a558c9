//! The memory that a kernel touches: reading the kernel's code and working out its accesses.
//!
//! [`image`] reads the forms in which code reaches the driver; PTX is parsed by a crate of its own
//! ([`ptx`]), and [`sass`] is machine code, taken apart. [`access`] is the analysis of both; its
//! page is the way in. Nothing here runs GPU code or knows of drivers or devices; the one program
//! that is run is NVIDIA's disassembler, where the user has it ([`disassembler`], [`toolkit`]).
#![forbid(unsafe_code)]

pub use streamsan_directories::Directory;
/// The syntax tree that the analysis of PTX takes.
pub use streamsan_ptx as ptx;

pub mod access;
pub mod disassembler;
pub mod image;
pub mod reader;
pub mod sass;
pub mod toolkit;
