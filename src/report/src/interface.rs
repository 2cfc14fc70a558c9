//! The interface by which a program calls CUDA, so that a fix is written in the program's own
//! calls.
//!
//! The stacks of the two calls tell it: the framework nearest to the line of the program that an
//! edit would stand at. Invariant: without a stack it is the driver's interface, whose calls were
//! seen.
//!
//! Triton has no streams of its own: a launch takes the current stream of PyTorch. JAX has none
//! that a program can name: a program waits for arrays.
//!
//! Sources: the references of the CUDA driver and runtime ("Event Management", "Stream
//! Management"), of `torch.cuda.Stream`, `cupy.cuda.Stream`, `numba.cuda` ("Events", "Streams"),
//! `jax.block_until_ready`, and of cudarc's `CudaStream`.

use crate::Report;
use streamsan_model::{CallFrame, CallStack, Finding, StackId, StreamKind};

/// An interface of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interface {
    /// `cuStreamSynchronize`.
    Driver,
    /// `cudaStreamSynchronize`.
    Runtime,
    /// `CudaStream::synchronize` of Rust's cudarc.
    Cudarc,
    /// `torch.cuda.Stream.synchronize`; Triton too.
    PyTorch,
    /// `cupy.cuda.Stream.synchronize`.
    CuPy,
    /// `numba.cuda.stream().synchronize`.
    Numba,
    /// `jax.block_until_ready`.
    Jax,
}

impl Interface {
    /// The expression for a stream that every program has.
    pub(crate) const fn default_stream(self, kind: StreamKind) -> Option<&'static str> {
        Some(match (self, kind) {
            (_, StreamKind::Blocking | StreamKind::NonBlocking) => return None,
            (Self::Driver, StreamKind::Legacy) => "CU_STREAM_LEGACY",
            (Self::Driver, StreamKind::PerThread) => "CU_STREAM_PER_THREAD",
            (Self::Runtime, StreamKind::Legacy) => "cudaStreamLegacy",
            (Self::Runtime, StreamKind::PerThread) => "cudaStreamPerThread",
            (Self::Cudarc, StreamKind::Legacy) => "context.default_stream()",
            (Self::Cudarc, StreamKind::PerThread) => "context.per_thread_stream()",
            (Self::PyTorch, StreamKind::Legacy) => "torch.cuda.default_stream()",
            (Self::CuPy, StreamKind::Legacy) => "cupy.cuda.Stream.null",
            (Self::CuPy, StreamKind::PerThread) => "cupy.cuda.Stream.ptds",
            (Self::Numba, StreamKind::Legacy) => "numba.cuda.legacy_default_stream()",
            (Self::Numba, StreamKind::PerThread) => "numba.cuda.per_thread_default_stream()",
            (Self::PyTorch, StreamKind::PerThread) | (Self::Jax, _) => return None,
        })
    }

    /// The call that records `event` on a stream.
    pub(crate) fn record(self, on: &str) -> String {
        match self {
            Self::Driver => format!("cuEventRecord(event, {on})"),
            Self::Runtime => format!("cudaEventRecord(event, {on})"),
            Self::Cudarc => format!("let event = {on}.record_event(None)?;"),
            Self::PyTorch | Self::Jax => format!("event = {on}.record_event()"),
            Self::CuPy => format!("event = {on}.record()"),
            Self::Numba => format!("event = numba.cuda.event(); event.record({on})"),
        }
    }

    /// The call by which a stream waits for `event`.
    pub(crate) fn wait(self, to: &str) -> String {
        match self {
            Self::Driver => format!("cuStreamWaitEvent({to}, event, 0)"),
            Self::Runtime => format!("cudaStreamWaitEvent({to}, event)"),
            Self::Cudarc => format!("{to}.wait(&event)?;"),
            Self::PyTorch | Self::CuPy | Self::Jax => format!("{to}.wait_event(event)"),
            Self::Numba => format!("event.wait({to})"),
        }
    }

    /// The one call by which a stream waits for all that another one was given so far, where the
    /// interface has such a call.
    pub(crate) fn join(self, to: &str, on: &str) -> Option<String> {
        match self {
            Self::PyTorch => Some(format!("{to}.wait_stream({on})")),
            Self::Cudarc => Some(format!("{to}.join(&{on})?;")),
            Self::Driver | Self::Runtime | Self::CuPy | Self::Numba | Self::Jax => None,
        }
    }

    /// The call by which the host waits for all that a stream was given so far.
    pub(crate) fn host_wait(self, on: &str) -> String {
        match self {
            Self::Driver => format!("cuStreamSynchronize({on})"),
            Self::Runtime => format!("cudaStreamSynchronize({on})"),
            Self::Cudarc => format!("{on}.synchronize()?;"),
            Self::PyTorch | Self::CuPy | Self::Numba => format!("{on}.synchronize()"),
            Self::Jax => "jax.block_until_ready(array)".to_owned(),
        }
    }

    /// The call that tells the interface's allocator of a stream that uses the memory.
    pub(crate) fn note_use(self, stream: &str) -> Option<String> {
        (self == Self::PyTorch).then(|| format!("tensor.record_stream({stream})"))
    }

    /// Whether programs in Python use it.
    const fn is_pythons(self) -> bool {
        matches!(self, Self::PyTorch | Self::CuPy | Self::Numba | Self::Jax)
    }

    /// The interface that a frame belongs to, if any.
    fn of_frame(frame: &CallFrame<'_>) -> Option<Self> {
        let image = frame.image.map_or("", |(image, _)| image);
        let name = image.rsplit('/').next().unwrap_or_default();
        let file = frame.file().unwrap_or_default();
        let function = frame.function().unwrap_or_default();
        let lies_in = |folder: &str| image.contains(folder) || file.contains(folder);
        let is_runtime = name.starts_with("libcudart")
            || function
                .strip_prefix("cuda")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        let is_torch = name.starts_with("libtorch") || name.starts_with("libc10");
        Some(match () {
            () if is_torch || lies_in("/torch/") || lies_in("/triton/") => Self::PyTorch,
            () if lies_in("/cupy/") || lies_in("/cupy_backends/") => Self::CuPy,
            () if lies_in("/numba/") || lies_in("/numba_cuda/") => Self::Numba,
            () if name.starts_with("xla_") || lies_in("/jax/") || lies_in("/jaxlib/") => Self::Jax,
            () if function.contains("cudarc::driver::safe") => Self::Cudarc,
            () if is_runtime => Self::Runtime,
            () => return None,
        })
    }

    /// The interface by which the frame at `line` of the program's own frames makes its call;
    /// `None` where the stack has no frame.
    fn of_stack(stack: &CallStack<'_>, line: usize) -> Self {
        let own = stack.own().nth(line).copied();
        let inner = match own {
            Some(own) => stack.frames.iter().take_while(|frame| **frame != own).count(),
            None => stack.frames.len(),
        };
        let speaks_python = stack.frames.iter().any(|frame| match frame.image {
            None => true,
            Some((image, _)) => {
                let name = image.rsplit('/').next().unwrap_or_default();
                name.starts_with("python3") || name.starts_with("lib") && name.contains("python")
            }
        });
        // An extension in C++ that a script of the program calls is mended in C++.
        let speaks_python = speaks_python && own.is_none_or(|own| own.image.is_none());
        let inner = stack.frames.get(..inner).unwrap_or_default();
        let named = inner.iter().rev().filter_map(Self::of_frame);
        let mut named = named.map(|interface| match interface.is_pythons() {
            true if !speaks_python => Self::Runtime,
            _ => interface,
        });
        named.next().unwrap_or(Self::Driver)
    }
}

impl Report<'_> {
    /// The interface of the calls of a finding, and whether both sides have it. The host is told to
    /// wait by the calls of the first side.
    pub(crate) fn interface(&self, finding: &Finding) -> (Interface, bool) {
        let stacks = [finding.first.stack, finding.second.stack];
        let lines = self.apart(stacks);
        let of = |side: usize| {
            let id: Option<StackId> = stacks[side];
            let stack = self.stack(id)?;
            Some(Interface::of_stack(&stack, lines[side]))
        };
        match (of(0), of(1)) {
            (Some(first), Some(second)) => {
                let both_in_python = first.is_pythons() && second.is_pythons();
                if first != second && both_in_python {
                    (first, false)
                } else {
                    (first.max(second), true)
                }
            }
            (Some(one), None) | (None, Some(one)) => (one, true),
            (None, None) => (Interface::Driver, true),
        }
    }
}
