//! Newtypes for everything that a trace refers to by number.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $repr);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// Global issue index: the position of a call's entry (or exit) among all calls of the run.
    /// An operation is identified by the index of its entry. 0 lies before every call.
    OpSeq(u64),
    "#"
);
id!(
    /// A process of the run.
    ProcessId(u32),
    "p"
);
id!(
    /// A host thread of the run.
    ThreadId(u32),
    "t"
);
id!(
    /// A CUDA device ordinal as its process sees it.
    DeviceId(u32),
    "d"
);
id!(
    /// A CUDA context.
    ContextId(u32),
    "c"
);
id!(
    /// A stream: never the handle, which is reused; default streams have ids of their own.
    StreamId(u32),
    "s"
);
id!(
    /// An event object from creation to destruction; its record versions are operations.
    EventId(u32),
    "e"
);
id!(
    /// One generation of an address range, from its allocation to its free.
    AllocationId(u32),
    "a"
);
id!(
    /// A kernel: code image and mangled name.
    KernelId(u32),
    "k"
);
id!(
    /// A code image that a process has loaded.
    ModuleId(u32),
    "i"
);

id!(
    /// The topology and the contents of a graph at one moment; changing either makes a new id.
    GraphId(u32),
    "g"
);
id!(
    /// An executable graph, from its instantiation to its destruction, including all updates.
    ExecutableId(u32),
    "x"
);
id!(
    /// Physical memory that several address ranges can stand for: `cuMemCreate`, memory shared
    /// between processes, host memory with a device address of its own.
    BackingId(u32),
    "m"
);
id!(
    /// An external semaphore object, whichever process imported it.
    SemaphoreId(u32),
    "y"
);
id!(
    /// A batch of file transfers, from its submission to its destruction.
    FileBatchId(u32),
    "f"
);
id!(
    /// A host stack: the frames that led to a call.
    StackId(u32),
    "h"
);
id!(
    /// A frame of host stacks.
    FrameId(u32),
    "n"
);
id!(
    /// An object by which host threads order themselves: the address of a mutex, condition
    /// variable, semaphore or barrier, or a thread's start and end. Unique in its process.
    SyncObject(u64),
    "o"
);

impl OpSeq {
    /// Before every operation.
    pub const START: Self = Self(0);
}

macro_rules! index {
    ($($name:ident),*) => {
        $(impl $name {
            /// The id as an index into a dense table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}
index!(
    ProcessId,
    ThreadId,
    DeviceId,
    ContextId,
    StreamId,
    EventId,
    AllocationId,
    KernelId,
    ModuleId,
    GraphId,
    ExecutableId,
    BackingId,
    SemaphoreId,
    FileBatchId,
    StackId,
    FrameId
);
