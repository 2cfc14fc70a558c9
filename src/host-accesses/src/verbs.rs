//! libibverbs: the kernel pins the pages of registered memory, which fails inside a fence. Pinning is no
//! access, and legal beside a running copy: fences there fall, and nothing is told of it.
//!
//! `ibv_reg_mr` is a macro for these functions in newer headers (rdma-core, `infiniband/verbs.h`).

use core::ffi::{c_int, c_uint, c_void};
use core::mem::transmute;
use core::ptr;

use crate::runtime::{drop_fences, verbs_function};

/// The function of libibverbs, or an answer in its place: the program has called it, so it is there.
macro_rules! verbs {
    ($($name:ident $index:literal ($($before:ident: $kind:ty,)* [$start:ident, $len:ident] $(, $after:ident: $other:ty)*) -> $result:ty, $absent:expr;)*) => {
        $(
            /// # Safety
            /// As libibverbs documents.
            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn $name(
                $($before: $kind,)* $start: *mut c_void, $len: usize $(, $after: $other)*
            ) -> $result {
                type Function = unsafe extern "C-unwind" fn($($kind,)* *mut c_void, usize $(, $other)*) -> $result;
                let real = verbs_function($index);
                if real.is_null() {
                    return $absent;
                }
                drop_fences($start as u64, $len as u64, false);
                // SAFETY: libibverbs' function of this name, with the program's arguments.
                unsafe {
                    let real: Function = transmute(real);
                    real($($before,)* $start, $len $(, $after)*)
                }
            }
        )*

        /// Our functions, in the runtime's order.
        pub(crate) fn functions() -> [*const c_void; 4] {
            [$($name as *const c_void),*]
        }
    };
}

verbs! {
    ibv_reg_mr 0 (domain: *mut c_void, [start, len], access: c_int) -> *mut c_void, ptr::null_mut();
    ibv_reg_mr_iova 1 (domain: *mut c_void, [start, len], iova: u64, access: c_int) -> *mut c_void, ptr::null_mut();
    ibv_reg_mr_iova2 2 (domain: *mut c_void, [start, len], iova: u64, access: c_uint) -> *mut c_void, ptr::null_mut();
    ibv_rereg_mr 3 (region: *mut c_void, flags: c_int, domain: *mut c_void, [start, len], access: c_int) -> c_int, -1;
}
