//! What a kernel touches: reading its code and working out which memory it accesses.
//!
//! This room holds the one PTX front end of the project ([`ptx`]): the simulated driver lowers and
//! runs what it parses. [`sass`] is machine code, taken apart. [`image`] reads the forms in which
//! code reaches the driver. [`access`] is the analysis of both; its page is the way in. Nothing here
//! runs GPU code or knows of drivers or devices; the one program that is run is NVIDIA's disassembler,
//! where the user has it ([`disassembler`], [`toolkit`]).
#![forbid(unsafe_code)]

pub use streamsan_directories::Directory;

pub mod access;
pub mod disassembler;
pub mod image;
pub mod ptx;
pub mod reader;
pub mod sass;
pub mod toolkit;
