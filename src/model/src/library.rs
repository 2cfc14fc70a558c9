//! Self-contained libraries, and whether the program or such a library makes a call.
//!
//! Most libraries pass on what the program asks for: a copy that PyTorch makes below a line of the
//! program is the program's copy, in the stream that the program chose. The libraries of the table
//! here are self-contained: the program gives them data and, at most, a stream. The program does
//! not ask for the events and flags that such a library uses internally.
//!
//! Invariant: a call counts as a library's own only where the stack shows it; in doubt it is the
//! program's.
//!
//! Sources: the reference of each library, for what its functions take. NCCL, cuBLAS, cuDNN, cuFFT,
//! cuSPARSE, cuSOLVER, cuRAND, cuTENSOR, NPP, nvJPEG, NVSHMEM, cuFile and TensorRT work in the
//! stream that the caller sets (`cublasSetStream` and its like, the last parameter of NCCL's
//! calls). XLA, by its PJRT interface, takes no stream: it makes all of its streams itself.
//!
//! Deliberately absent: frameworks (PyTorch, CuPy) and bindings. A call below a line of the program
//! there may be what the line asks for.

use crate::call_stack::{CallFrame, CallStack};
use crate::origin::{file_name, is_system_image};
use crate::{Entities, Fingerprint, Lint, Origin, RaceClass, StackId};
use std::borrow::Cow;

/// Who chooses the stream that a self-contained library works in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Works {
    /// In the stream that its caller chose.
    InTheCallersStream,
    /// In streams that the library makes and chooses itself.
    InItsOwnStreams,
}

/// The subject of a call, as far as it decides whom the call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// An event or a flag.
    Events,
    /// The choice of the stream that does the work.
    Streams,
}

struct SelfContained {
    name: &'static str,
    /// The prefixes of the library's file names.
    files: &'static [&'static str],
    works: Works,
}

const fn in_the_callers_stream(
    name: &'static str,
    files: &'static [&'static str],
) -> SelfContained {
    SelfContained { name, files, works: Works::InTheCallersStream }
}

const SELF_CONTAINED: [SelfContained; 14] = [
    in_the_callers_stream("NCCL", &["libnccl"]),
    in_the_callers_stream("cuBLAS", &["libcublas"]),
    in_the_callers_stream("cuDNN", &["libcudnn"]),
    in_the_callers_stream("cuFFT", &["libcufft"]),
    in_the_callers_stream("cuSPARSE", &["libcusparse"]),
    in_the_callers_stream("cuSOLVER", &["libcusolver"]),
    in_the_callers_stream("cuRAND", &["libcurand"]),
    in_the_callers_stream("cuTENSOR", &["libcutensor"]),
    in_the_callers_stream("NPP", &["libnpp"]),
    in_the_callers_stream("nvJPEG", &["libnvjpeg"]),
    in_the_callers_stream("NVSHMEM", &["libnvshmem"]),
    in_the_callers_stream("cuFile", &["libcufile"]),
    in_the_callers_stream("TensorRT", &["libnvinfer"]),
    SelfContained {
        name: "XLA",
        files: &["xla_cuda_plugin.so", "xla_extension.so"],
        works: Works::InItsOwnStreams,
    },
];

/// The self-contained library that an image belongs to.
fn self_contained(image: &str) -> Option<&'static SelfContained> {
    let name = file_name(image);
    SELF_CONTAINED.iter().find(|library| library.files.iter().any(|file| name.starts_with(file)))
}

/// Whether an image belongs to a self-contained library, in whatever directory.
pub(crate) fn is_self_contained(image: &str) -> bool {
    self_contained(image).is_some()
}

/// Whether an image is the CUDA runtime, which stands between a call and its maker.
pub(crate) fn is_cuda_runtime(image: &str) -> bool {
    file_name(image).starts_with("libcudart")
}

/// Whether an image is the Python interpreter, whose functions only Python frames tell apart.
fn is_interpreter(image: &str) -> bool {
    let name = file_name(image);
    name.starts_with("libpython") || name == "python" || name.starts_with("python3")
}

impl<'a> CallStack<'a> {
    /// Index of the first frame that may be the program's: code that no rule takes for a library's.
    fn programs_first(&self) -> Option<usize> {
        let has_python = self.frames.iter().any(|frame| frame.image.is_none());
        self.frames.iter().position(|frame| match frame.image {
            // Code in no file was made at run time, from an unknown source.
            Some(("", _)) => true,
            // Python frames were not recorded, so the functions may belong to anybody.
            Some((image, _)) if is_interpreter(image) => !has_python,
            Some((image, _)) => frame.is_own() || !is_system_image(image),
            None => frame.origin == Origin::Program,
        })
    }

    /// The frames between the call and the program, innermost first, without those of the CUDA
    /// runtime: the library that makes the call. Empty where the program makes the call itself.
    pub fn library_frames(&self) -> &[CallFrame<'a>] {
        let runtime =
            |frame: &CallFrame<'_>| frame.image.is_some_and(|(image, _)| is_cuda_runtime(image));
        let begin = self.frames.iter().take_while(|frame| runtime(frame)).count();
        let end = self.programs_first().unwrap_or(self.frames.len());
        self.frames.get(begin..end).unwrap_or_default()
    }

    /// The library that makes the call on its own account. `None` where the program makes the call,
    /// where a library passes on what the program asks for, and where the stack does not tell.
    fn library_of_its_own(&self, about: About) -> Option<Cow<'static, str>> {
        let frames = self.library_frames();
        let mut images = frames.iter().filter_map(|frame| frame.image.map(|(image, _)| image));
        let decides = |library: &&SelfContained| {
            about == About::Events || library.works == Works::InItsOwnStreams
        };
        if let Some(library) = images.clone().filter_map(self_contained).find(decides) {
            return Some(Cow::Borrowed(library.name));
        }
        // A thread of a library makes the call if no frame at all may be the program's.
        let is_whole = !self.truncated && self.programs_first().is_none();
        let innermost = images.next().filter(|_| is_whole)?;
        let name = self_contained(innermost).map(|library| Cow::Borrowed(library.name));
        Some(name.unwrap_or_else(|| Cow::Owned(file_name(innermost).to_owned())))
    }
}

impl Lint {
    /// The library inside which all calls of the finding lie, so that the program cannot mend it.
    /// `None` where a call is the program's, or no stack tells whom it belongs to.
    ///
    /// Calls on events and flags belong to a self-contained library wherever the library stands
    /// between the call and the program. The choice of a stream belongs to the library only where
    /// the program gives it no stream, or where the program does not appear in the stack.
    pub fn library(&self, entities: &Entities) -> Option<Cow<'static, str>> {
        let about = match self.class {
            RaceClass::LegacyBesideNonblocking | RaceClass::PooledStreamAlias => About::Streams,
            _ => About::Events,
        };
        let library =
            |stack: Option<StackId>| CallStack::of(entities, stack)?.library_of_its_own(about);
        let own = library(self.stack)?;
        if self.related.is_some() {
            library(self.related_stack)?;
        }
        Some(own)
    }

    /// The fingerprint with the call sites of the call and of the related call. A lint inside a
    /// library gets the library's name instead, since the program's lines do not tell such lints
    /// apart.
    pub fn fingerprint_at_sites(&self, entities: &Entities) -> Fingerprint {
        match self.library(entities) {
            Some(library) => {
                let own = format!("{:016x}", self.fingerprint.0);
                Fingerprint::of([own.as_str(), "inside", &library])
            }
            None => self.fingerprint.at_sites(entities, &[self.stack, self.related_stack]),
        }
    }
}
