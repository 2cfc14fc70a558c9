//! Allocations that libraries make for themselves.
//!
//! NCCL, NVSHMEM and UCX talk with the device and with other processes through page-locked memory, and
//! cuDNN keeps flags there: what they allocate is never fenced. Whose an allocation is, the return
//! addresses of its call tell.

use crate::{attach, stacks, thread};

/// Begins of the names of their files.
const NAMES: [&[u8]; 4] = [b"libnccl", b"libnvshmem", b"libuc", b"libcudnn"];

/// Whether the call at hand comes from such a library.
pub(super) fn are_below() -> bool {
    let Some(attachment) = attach::known() else { return false };
    thread::with(|thread| stacks::is_below(thread, &attachment, is_one))
}

/// Whether the path is that of such a library's file.
fn is_one(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    // UCX: libucp, libucs, libuct and libucm, and the modules of libuct.
    NAMES.iter().any(|begin| name.starts_with(begin))
        && (!name.starts_with(b"libuc") || matches!(name.get(5), Some(b'p' | b's' | b't' | b'm')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for path in
            ["/x/libnccl.so.2", "libnvshmem_host.so.3", "/a/libuct_cuda.so.0", "/libcudnn_ops.so.9"]
        {
            assert!(is_one(path.as_bytes()), "{path}");
        }
        for path in ["/libnccl.so/libcudart.so.13", "libucontext.so", "/usr/lib/libc.so.6", ""] {
            assert!(!is_one(path.as_bytes()), "{path}");
        }
    }
}
