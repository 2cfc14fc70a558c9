//! Kernels through the public interface: images, machine code and PTX that were made by hand. What
//! NVIDIA's compiler makes is in the other test binary, `compiled`.

mod access;
mod conclusions;
mod disassembler;
mod image;
mod instructions;
mod machine;
mod reader;
mod toolkit;
