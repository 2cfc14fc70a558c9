//! How the runtime and a measuring library meet in one process.
//!
//! The driver loads the library where only the driver finds it, so the library registers itself, with
//! functions of the runtime that it finds with `dlsym`:
//!
//! ```c
//! int   streamsan_measure_attach(const struct MeasureHooks *hooks); /* 0: taken */
//! void *streamsan_driver_function(const char *name); /* the driver's own function, or null */
//! ```
//!
//! Invariants: the first library stays; its hooks live as long as the process.
//!
//! Deliberately absent: the bytes ([`crate::MeasuredRun`]).

/// Names NVIDIA's library `libsanitizer-public.so` to the measuring library.
pub const SANITIZER_VARIABLE: &str = "STREAMSAN_SANITIZER";

/// Names the folder of the assembled patches: a file `sm_90.cubin` for each architecture.
pub const MEASURE_PATCHES_VARIABLE: &str = "STREAMSAN_MEASURE_PATCHES";

/// The functions that the runtime calls around launches.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct MeasureHooks {
    /// Bytes of this structure; a runtime takes those of its own size only.
    pub size: u64,
    /// Before the driver is called for the launch `op` of a function in a stream: gives the function
    /// that is to be launched. A null stream is `CU_STREAM_LEGACY` or `CU_STREAM_PER_THREAD`, as
    /// the entry point means it.
    pub launching: unsafe extern "C" fn(op: u64, function: u64, stream: u64) -> u64,
    /// After the driver has returned from the launch of a function or a graph.
    pub launched: unsafe extern "C" fn(op: u64, stream: u64, result: i32),
}
