//! Stands in for ThreadSanitizer's run-time library in programs compiled with `-fsanitize=thread`.
//!
//! The compiler turns loads and stores into calls of the functions here. Without streamsan they do
//! nothing, save for atomics, which they perform. Under `streamsan run` what touches memory that
//! the GPU may use is handed to the runtime; all else costs a look into a bit map.
//!
//! The names and signatures are those that gcc and clang call (LLVM, `tsan_interface.h` and
//! `tsan_interface_atomic.h`). Races between host threads are nobody's business here: link the real
//! library to find them.
//!
//! Deliberately absent: interceptors of the C library. What `read` or a `memcpy` inside it touches
//! is not seen.

mod accesses;
mod atomics;
mod view;
mod wide;
