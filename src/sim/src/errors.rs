//! The driver's status codes: number, name, and one line on what each means here.
//!
//! The numbers and names are the interface of the CUDA driver API (CUresult). The texts are this
//! project's own. Codes that the simulator never returns are listed too, because
//! `cuGetErrorName` answers for every code.

use std::ffi::CStr;

/// A status other than `CUDA_SUCCESS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CuError(pub(crate) u32);

/// The outcome of a driver call.
pub(crate) type Outcome<T = ()> = Result<T, CuError>;

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: u32 = 0;

macro_rules! statuses {
    ($($constant:ident = $code:literal, $name:literal, $text:literal;)*) => {
        impl CuError {
            $(pub(crate) const $constant: CuError = CuError($code);)*
        }
        const NAMED: &[(u32, &CStr, &CStr)] = &[$(($code, $name, $text),)*];
    };
}

statuses! {
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"an argument is out of its permitted range";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"not enough memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"the driver is not initialized in this process";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"no such device";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"the code image is not of a known form";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"no context, or not a valid one";
    NO_BINARY_FOR_GPU = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"the image holds no code that this device runs";
    PEER_ACCESS_UNSUPPORTED = 217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not possible between these devices";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"the PTX text was not accepted";
    FILE_NOT_FOUND = 301, c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found";
    OPERATING_SYSTEM = 304, c"CUDA_ERROR_OPERATING_SYSTEM", c"a call to the operating system failed";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"not a valid handle of this kind";
    ILLEGAL_STATE = 401, c"CUDA_ERROR_ILLEGAL_STATE", c"a resource that the operation needs is not in a state for it";
    LOSSY_QUERY = 402, c"CUDA_ERROR_LOSSY_QUERY", c"the answer does not fit what the query can tell";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"no symbol of that name";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"the work is not finished yet";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an operation touched memory outside every allocation";
    LAUNCH_OUT_OF_RESOURCES = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"the launch asks for more than the device has";
    LAUNCH_TIMEOUT = 702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"a kernel did not end within its budget of instructions";
    PEER_ACCESS_ALREADY_ENABLED = 704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access was never enabled";
    CONTEXT_IS_DESTROYED = 709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"the context has been destroyed";
    ASSERT = 710, c"CUDA_ERROR_ASSERT", c"an assertion failed in a kernel";
    HOST_MEMORY_ALREADY_REGISTERED = 712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"the host range is already registered";
    HOST_MEMORY_NOT_REGISTERED = 713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"the host range is not registered";
    MISALIGNED_ADDRESS = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"a kernel used an address that is not aligned to its access";
    INVALID_PC = 718, c"CUDA_ERROR_INVALID_PC", c"a kernel jumped to an address that is no code";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"a kernel stopped abnormally";
    COOPERATIVE_LAUNCH_TOO_LARGE = 720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"the blocks of a cooperative launch do not fit the device at once";
    NOT_PERMITTED = 800, c"CUDA_ERROR_NOT_PERMITTED", c"not permitted here (a host function may not call CUDA)";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"not supported by the simulated driver";
    STREAM_CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"not permitted while a stream is being captured";
    STREAM_CAPTURE_INVALIDATED = 901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"the capture was invalidated by an earlier error";
    STREAM_CAPTURE_MERGE = 902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"two independent captures would have been merged";
    STREAM_CAPTURE_UNMATCHED = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the capture was not begun in this stream";
    STREAM_CAPTURE_UNJOINED = 904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"a stream that was forked from the capture was not joined again";
    STREAM_CAPTURE_ISOLATION = 905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"a dependency would have crossed the border of the capture";
    STREAM_CAPTURE_IMPLICIT = 906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"the legacy stream would have waited for a stream that is being captured";
    CAPTURED_EVENT = 907, c"CUDA_ERROR_CAPTURED_EVENT", c"the event was last recorded in a stream that was being captured";
    STREAM_CAPTURE_WRONG_THREAD = 908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"the capture was begun by another thread";
    GRAPH_EXEC_UPDATE_FAILURE = 910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"the graph does not fit the executable that it was to update";
    INVALID_RESOURCE_TYPE = 914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"the resource is of another type";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"internal error of the simulated driver";
}

/// Codes of the interface that are named but never returned.
const OTHERS: &[(u32, &CStr)] = &[
    (4, c"CUDA_ERROR_DEINITIALIZED"),
    (5, c"CUDA_ERROR_PROFILER_DISABLED"),
    (6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (34, c"CUDA_ERROR_STUB_LIBRARY"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (100, c"CUDA_ERROR_NO_DEVICE"),
    (102, c"CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (205, c"CUDA_ERROR_MAP_FAILED"),
    (206, c"CUDA_ERROR_UNMAP_FAILED"),
    (207, c"CUDA_ERROR_ARRAY_IS_MAPPED"),
    (208, c"CUDA_ERROR_ALREADY_MAPPED"),
    (210, c"CUDA_ERROR_ALREADY_ACQUIRED"),
    (211, c"CUDA_ERROR_NOT_MAPPED"),
    (212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, c"CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (300, c"CUDA_ERROR_INVALID_SOURCE"),
    (302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (711, c"CUDA_ERROR_TOO_MANY_PEERS"),
    (714, c"CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (721, c"CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, c"CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (806, c"CUDA_ERROR_MPS_RPC_FAILURE"),
    (807, c"CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (811, c"CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (812, c"CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (909, c"CUDA_ERROR_TIMEOUT"),
    (911, c"CUDA_ERROR_EXTERNAL_DEVICE"),
    (912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (913, c"CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (916, c"CUDA_ERROR_KEY_ROTATION"),
];

/// Name of a status, `None` for a number that is no status.
pub(crate) fn name(code: u32) -> Option<&'static CStr> {
    if code == SUCCESS {
        return Some(c"CUDA_SUCCESS");
    }
    let named = NAMED.iter().find(|entry| entry.0 == code).map(|entry| entry.1);
    named.or_else(|| OTHERS.iter().find(|entry| entry.0 == code).map(|entry| entry.1))
}

/// The meaning of a status, `None` for a number that is no status.
pub(crate) fn text(code: u32) -> Option<&'static CStr> {
    if code == SUCCESS {
        return Some(c"no error");
    }
    let named = NAMED.iter().find(|entry| entry.0 == code).map(|entry| entry.2);
    named.or_else(|| name(code).map(|_| c"a status that the simulated driver never returns"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_one_name_and_one_text() {
        let mut codes: Vec<u32> = NAMED.iter().map(|entry| entry.0).collect();
        codes.extend(OTHERS.iter().map(|entry| entry.0));
        let mut unique = codes.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), codes.len());
        for code in codes {
            assert!(name(code).is_some_and(|name| name.to_bytes().starts_with(b"CUDA_ERROR_")));
            assert!(text(code).is_some());
        }
        assert!(name(123_456).is_none() && text(123_456).is_none());
    }
}
