//! The interface by which a program calls CUDA, so that a fix names the program's own calls.
//!
//! The stacks of the two calls tell it. Invariant: without a stack it is the driver's interface,
//! whose calls were seen.

use crate::Report;
use streamsan_model::{Finding, FramePlace, StackId};

/// An interface of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Interface {
    /// `cuStreamSynchronize`.
    Driver,
    /// `cudaStreamSynchronize`.
    Runtime,
    /// `torch.cuda.current_stream().synchronize()`.
    PyTorch,
}

impl Interface {
    /// The calls that let the host wait for a stream, with an event behind `after` where the stream
    /// goes on.
    pub(crate) fn host_wait(self, after: &str) -> String {
        match self {
            Self::Driver => {
                format!(
                    "cuStreamSynchronize, or cuEventRecord behind {after} and cuEventSynchronize"
                )
            }
            Self::Runtime => format!(
                "cudaStreamSynchronize, or cudaEventRecord behind {after} and cudaEventSynchronize"
            ),
            Self::PyTorch => format!(
                "torch.cuda.current_stream().synchronize() under that stream, or a torch.cuda.Event with \
                 record() behind {after} and synchronize()"
            ),
        }
    }

    /// The interface that a frame belongs to.
    fn of_frame(image: Option<&str>, file: Option<&str>, function: Option<&str>) -> Self {
        let image = image.and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        if ["libtorch", "libc10"].iter().any(|name| image.starts_with(name))
            || file.is_some_and(|file| file.contains("/torch/"))
        {
            return Self::PyTorch;
        }
        let rest = function.and_then(|name| name.strip_prefix("cuda"));
        let is_runtime =
            rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
        if image.starts_with("libcudart") || is_runtime { Self::Runtime } else { Self::Driver }
    }
}

impl Report<'_> {
    /// The interface of the calls of a finding.
    pub(crate) fn interface(&self, finding: &Finding) -> Interface {
        let sides = [finding.first.stack, finding.second.stack];
        sides.into_iter().map(|id| self.interface_of(id)).max().unwrap_or(Interface::Driver)
    }

    fn interface_of(&self, id: Option<StackId>) -> Interface {
        let entities = self.input.entities;
        let frames = id.and_then(|id| entities.stack(id)).into_iter().flat_map(|s| &s.frames);
        let frames = frames.filter_map(|&id| entities.frame(id));
        let of = |frame: &streamsan_model::Frame| {
            let image = match &frame.place {
                FramePlace::Native { image, .. } => Some(&**image),
                FramePlace::Python => None,
            };
            let sources = frame.source.iter().map(|source| {
                Interface::of_frame(image, source.file.as_deref(), source.function.as_deref())
            });
            sources.chain([Interface::of_frame(image, None, None)]).max()
        };
        frames.filter_map(|frame| of(frame)).max().unwrap_or(Interface::Driver)
    }
}

#[cfg(test)]
mod tests {
    use super::Interface;

    #[test]
    fn frames_tell_whose_calls_they_are() {
        let of = Interface::of_frame;
        let torch = "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so";
        assert_eq!(of(Some(torch), None, None), Interface::PyTorch);
        assert_eq!(of(None, Some("/venv/torch/_tensor.py"), Some("cpu")), Interface::PyTorch);
        assert_eq!(of(Some("/lib/libcudart.so.13"), None, None), Interface::Runtime);
        assert_eq!(of(Some("/app"), None, Some("cudaMemcpyAsync")), Interface::Runtime);
        assert_eq!(of(Some("/app"), None, Some("cudart_is_no_call")), Interface::Driver);
        assert_eq!(of(Some("/app"), Some("/src/app.c"), Some("main")), Interface::Driver);
    }

    #[test]
    fn each_names_its_own_calls() {
        assert!(Interface::Runtime.host_wait("(1)").contains("cudaEventSynchronize"));
        assert!(Interface::Driver.host_wait("(1)").contains("behind (1) and cuEventSynchronize"));
        let torch = Interface::PyTorch.host_wait("(1)");
        assert!(torch.starts_with("torch.cuda.current_stream().synchronize()"));
    }
}
