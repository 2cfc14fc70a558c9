//! The library that is preloaded into the program under test.
//!
//! It exports every known symbol of the CUDA driver, `dlsym` and `dlvsym`, so that each way by
//! which a program reaches the driver leads through it: direct links, `dlsym`, and
//! `cuGetProcAddress`. Calls of the hook table are recorded into a ring of shared memory; all
//! others are counted and jump on to the driver.
//!
//! Invariants: results, arguments, `errno` and stdout stay the program's; no lock is held around a
//! driver call, and nothing is allocated but where a graph becomes executable or is cloned, and
//! where a thread records its first stack or one in newly loaded code; no panic leaves a hook; whatever fails inside turns recording off and the program runs as without
//! us. NVIDIA's export tables pass untouched.
//!
//! Not seen: calls of a library that links the driver itself and was opened with RTLD_DEEPBIND
//! (the loader then prefers the driver's symbols to ours), and other interposers between this
//! library and the driver (hooks call the driver itself).
//!
//! Deliberately absent: hooks of `dlopen` (its caller's search path would be lost), at-exit work
//! (everything published is already in shared memory; what instrumented code touched last is the
//! exception), and any meaning of a call.

#![cfg_attr(test, expect(dead_code, reason = "the test build exports nothing"))]

mod accesses;
mod allocator;
mod attach;
mod call;
mod capture;
mod elf;
mod file_tags;
mod graphs;
mod hooks;
mod host;
mod host_function;
mod images;
mod kept_graphs;
mod layouts;
mod loader;
mod measuring;
mod procaddr;
mod resolve;
mod rings;
mod room;
mod spin;
mod stacks;
mod system_call;
mod thread;
mod thunks;
mod unknown;
mod variables;
