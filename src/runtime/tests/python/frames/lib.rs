//! The runtime's module for Python frames as a library that a Python program loads: the program
//! compares what it sees with what the interpreter says.

use std::ffi::{CStr, c_int, c_void};
use std::fmt::Write;

// Modules of the runtime by their files: its crate would bring the hooks into this library.
#[path = "../../../src/elf.rs"]
#[expect(dead_code, reason = "the runtime's module, used in part")]
mod elf;
#[path = "../../../src/stacks/python/mod.rs"]
#[expect(dead_code, reason = "the runtime's module, used in part")]
mod python;

use python::PythonFrame;
use python::merge::{Merged, NativeFrame, merge};

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    /// While a frame is visited: the stack pointer in it.
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
}

fn native_frames() -> Vec<NativeFrame> {
    extern "C" fn visit(context: *mut c_void, data: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context; `data` is the vector below.
        unsafe {
            let frames = &mut *data.cast::<Vec<NativeFrame>>();
            let (address, stack) = (_Unwind_GetIP(context), _Unwind_GetCFA(context));
            // The end of the stack.
            if address != 0 {
                frames.push(NativeFrame { address, stack });
            }
        }
        0
    }
    let mut frames = Vec::new();
    // SAFETY: the vector outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut frames).cast()) };
    frames
}

/// Name of the exported function that holds `address`, else of its object.
fn name_of(address: usize) -> String {
    // SAFETY: any address may be asked for; the names stay as long as their objects.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr((address - 1) as *const c_void, &mut info) == 0 {
            return "?".to_owned();
        }
        let name = if info.dli_sname.is_null() { info.dli_fname } else { info.dli_sname };
        CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Writes the calling thread's stack into `buffer`, innermost frame first, one a line with its
/// fields apart by tabs: `P`, file, function and line (0: none) of a Python frame, or `N` and the
/// name of a native one. Walks at most `limit` Python frames; a line `cut` says that there are
/// more. With `by_stack` 0 the C stack is not used to put the frames into order. Gives the length
/// of the text.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn frames_text(
    buffer: *mut u8,
    size: usize,
    limit: usize,
    by_stack: c_int,
) -> usize {
    let mut frames = vec![PythonFrame::default(); limit];
    let walk = python::walk(&mut frames);
    frames.truncate(walk.count);
    let mut native = native_frames();
    if by_stack == 0 {
        frames.iter_mut().for_each(|frame| frame.stack = 0);
        native.iter_mut().for_each(|frame| frame.stack = 0);
    }
    let mut text = String::new();
    merge(&native, &frames, &python::eval_code(), &mut |frame| match frame {
        Merged::Native(index) => {
            let _ = writeln!(text, "N\t{}", name_of(native[index].address));
        }
        Merged::Python(index) => python::describe(&frames[index], &mut |frame| {
            let line = frame.line.unwrap_or(0);
            let _ = writeln!(text, "P\t{}\t{}\t{line}", frame.file, frame.function);
        }),
    });
    if walk.cut {
        text.push_str("cut\n");
    }
    if let Some(refusal) = python::refusal() {
        let _ = writeln!(text, "refused\t{}", refusal.description());
    }
    let len = text.len().min(size);
    // SAFETY: promised by the caller.
    unsafe { buffer.copy_from_nonoverlapping(text.as_ptr(), len) };
    len
}

/// Walks again and again for so many milliseconds; gives how many frames were seen.
#[unsafe(no_mangle)]
pub extern "C" fn walk_for(milliseconds: u64) -> u64 {
    let start = std::time::Instant::now();
    let mut frames = [PythonFrame::default(); 64];
    let mut seen = 0;
    while start.elapsed().as_millis() < u128::from(milliseconds) {
        seen += python::walk(&mut frames).count as u64;
    }
    seen
}
