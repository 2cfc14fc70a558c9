//! The name of a call as the program wrote it. streamsan sees the driver's entry points; a program
//! on the CUDA runtime wrote `cudaMemcpyAsync` where the driver is asked for
//! `cuMemcpyHtoDAsync_v2`.
//!
//! The stack of the call tells the name: the frames of the runtime lie innermost, whether its
//! library is loaded or linked into the program. Invariant: where the stack does not tell it, the
//! name is the driver's, never a guess.

use crate::call_stack::{CallFrame, CallStack};
use crate::library::is_cuda_runtime;
use crate::{Entities, Origin, StackId};

/// Beginnings of names that the static runtime gives to its internal functions, and nvcc to the
/// functions that stand between a launch and the runtime.
const INTERNAL: [&str; 4] = ["libcudart_static_", "cudart::", "__cuda", "__device_stub_"];

impl<'a> CallStack<'a> {
    /// The function of the CUDA runtime that the program called; `None` where the program called
    /// the driver, or where the runtime's frames have no names.
    pub fn runtime_call(&self) -> Option<&'a str> {
        let runtime = self.frames.iter().take_while(|frame| is_of_the_runtime(frame));
        runtime.filter_map(|frame| runtime_function(frame.function()?)).last()
    }

    /// The name of a call with this stack in the program's language: the runtime's where the stack
    /// tells it, else the driver's without the suffixes that programs do not write.
    pub fn called(&self, api: &'a str) -> &'a str {
        // What the host does without the driver has no name in the runtime either.
        let runtime = api.starts_with("cu").then(|| self.runtime_call()).flatten();
        runtime.unwrap_or_else(|| without_version(api))
    }
}

fn is_of_the_runtime(frame: &CallFrame<'_>) -> bool {
    let function = frame.function().unwrap_or_default();
    frame.origin == Origin::Library
        && (frame.image.is_some_and(|(image, _)| is_cuda_runtime(image))
            || runtime_function(function).is_some()
            || INTERNAL.iter().any(|start| function.starts_with(start)))
}

/// The name without template arguments (`cudaMalloc<float>` is in the runtime's header) and without
/// the suffix of its versions.
pub(crate) fn runtime_function(function: &str) -> Option<&str> {
    let rest = function.strip_prefix("cuda")?;
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        .then(|| function.split(['<', '(']).next().map(without_version))?
}

/// The name of an entry point without the suffixes that headers add by macros: `_v2`, and `_ptds`
/// and `_ptsz` for the forms that use a default stream for each thread.
pub fn without_version(api: &str) -> &str {
    let mut name = api;
    loop {
        let shorter = name.strip_suffix("_ptds").or_else(|| name.strip_suffix("_ptsz"));
        let shorter = shorter.or_else(|| {
            let (shorter, version) = name.rsplit_once("_v")?;
            let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit());
            is_version.then_some(shorter)
        });
        match shorter {
            Some(shorter) if name.starts_with("cu") && !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}

impl Entities {
    /// The name of a call in the program's language, as [`CallStack::called`].
    pub fn called<'a>(&'a self, api: &'a str, stack: Option<StackId>) -> &'a str {
        match CallStack::of(self, stack) {
            Some(stack) => stack.called(api),
            None => without_version(api),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_version;
    use crate::call_stack::CallStack;
    use crate::{Frame, FrameId, FramePlace, SourceFrame};

    /// `IMAGE FUNCTION@FILE`, the last two may be missing.
    fn frame(text: &str) -> Frame {
        let (image, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (function, file) = rest.split_once('@').unwrap_or((rest, ""));
        let some = |text: &str| (!text.is_empty()).then(|| text.into());
        let source =
            SourceFrame { function: some(function), file: some(file), line: None, inlined: false };
        Frame {
            id: FrameId(0),
            place: FramePlace::Native { image: image.into(), build_id: None, offset: 0x40 },
            source: if rest.is_empty() { Vec::new() } else { vec![source] },
        }
    }

    fn called(frames: &[&str]) -> Option<String> {
        let frames: Vec<Frame> = frames.iter().map(|text| frame(text)).collect();
        CallStack::of_frames(&frames, false).runtime_call().map(str::to_owned)
    }

    #[test]
    fn the_outermost_frame_of_the_runtime_has_the_name() {
        let cases: [(&[&str], Option<&str>); 8] = [
            // The runtime's library, of whose functions only the exported ones have names.
            (
                &[
                    "/v/libcudart.so.13",
                    "/v/libcudart.so.13 cudaMemcpyAsync",
                    "/v/libtorch.so at::f",
                ],
                Some("cudaMemcpyAsync"),
            ),
            // Linked into the program, with the templates of its header.
            (
                &[
                    "/p/app libcudart_static_53",
                    "/p/app cudaMalloc",
                    "/p/app cudaMalloc<float>@/usr/local/cuda/include/cuda_runtime.h",
                    "/p/app main@/p/main.cu",
                ],
                Some("cudaMalloc"),
            ),
            (
                &[
                    "/p/app cudaLaunchKernel_ptsz",
                    "/p/app __device_stub__Z4Fillv@/tmp/a.cudafe1.stub.c",
                    "/p/app main@/p/main.cu",
                ],
                Some("cudaLaunchKernel"),
            ),
            // A function of the program's that is named like the runtime's.
            (
                &["/p/app cudaFree", "/p/app cudaCheckedFree@/p/pool.cu", "/p/app main@/p/main.cu"],
                Some("cudaFree"),
            ),
            // The program calls the driver below a call of the runtime's, in a callback.
            (&["/p/app helper@/p/a.c", "/v/libcudart.so.13 cudaLaunchHostFunc"], None),
            // Nothing is known of the runtime's frames, or there is no runtime.
            (&["/v/libcudart.so.13", "/p/app main@/p/main.cu"], None),
            (&["/p/app", "/p/app main@/p/main.cu"], None),
            (&[], None),
        ];
        for (frames, expected) in cases {
            assert_eq!(called(frames).as_deref(), expected, "{frames:?}");
        }
    }

    #[test]
    fn versions_are_not_part_of_a_name() {
        for (api, name) in [
            ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
            ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
            ("cuGraphAddNode_v2", "cuGraphAddNode"),
            ("cuMemcpyBatchAsync_ptsz", "cuMemcpyBatchAsync"),
            ("cuStreamWaitEvent", "cuStreamWaitEvent"),
            ("cuda_v", "cuda_v"),
            ("host access", "host access"),
            ("my_v2", "my_v2"),
            ("_v2", "_v2"),
        ] {
            assert_eq!(without_version(api), name);
        }
    }
}
