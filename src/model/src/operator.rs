//! The operator of PyTorch in which a call was made, as its profiler names it.
//!
//! PyTorch calls each operator through a function of its own (`at::_ops::mul_Tensor::call`), and each
//! step of the backward pass through a node (`torch::autograd::generated::MulBackward0::apply`). Both
//! are exported functions, so the native frames of a stack tell the operator, and recording it costs
//! the program nothing. Source: PyTorch, `torchgen/gen.py` (`ComputeOperators`) and
//! `tools/autograd/gen_autograd_functions.py`.
//!
//! Deliberately absent: the operators of stacks without native frames (`--stacks=python`), and what
//! other frameworks do; their Python functions stand in the stack.

use crate::call_stack::{CallFrame, CallStack};
use std::fmt;

/// What PyTorch was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TorchOperator<'a> {
    /// An operator, by its unambiguous name: with its overload behind an underscore, `mul_Tensor` for
    /// what the documentation writes as `aten::mul.Tensor`.
    Aten(&'a str),
    /// A step of the backward pass, `MulBackward0`.
    Backward(&'a str),
}

impl fmt::Display for TorchOperator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aten(name) => write!(f, "aten::{name}"),
            Self::Backward(name) => f.write_str(name),
        }
    }
}

impl<'a> CallStack<'a> {
    /// The operator that the program asked for: the outermost one behind the innermost Python
    /// function that led to one.
    pub fn torch_operator(&self) -> Option<TorchOperator<'a>> {
        let mut outermost = None;
        for frame in &self.frames {
            let operator = operator(frame);
            // An operator further out that calls Python, such as a function of autograd's written in
            // Python, is not what this Python function asked for.
            if frame.image.is_none() && outermost.is_some() {
                break;
            }
            outermost = operator.or(outermost);
        }
        outermost
    }
}

fn operator<'a>(frame: &CallFrame<'a>) -> Option<TorchOperator<'a>> {
    frame.image?;
    let function = frame.function()?;
    // Parameters are not shown by all demanglers.
    let function = function.split_once('(').map_or(function, |(name, _)| name);
    let (scope, method) = function.rsplit_once("::")?;
    let of = |namespace| {
        let name = scope.strip_prefix(namespace)?;
        (!name.is_empty() && !name.contains("::")).then_some(name)
    };
    match method {
        "call" | "redispatch" => of("at::_ops::").map(TorchOperator::Aten),
        "apply" => of("torch::autograd::generated::").map(TorchOperator::Backward),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::call_stack::CallStack;
    use crate::{Frame, FrameId, FramePlace, SourceFrame};

    /// Functions innermost first, those that begin with `py ` in Python.
    fn operator(functions: &[&str]) -> Option<String> {
        let frame = |function: &&str| {
            let (place, function) = match function.strip_prefix("py ") {
                Some(function) => (FramePlace::Python, function),
                None => {
                    let image = "/v/site-packages/torch/lib/libtorch_cpu.so".into();
                    (FramePlace::Native { image, build_id: None, offset: 0x40 }, *function)
                }
            };
            let file = matches!(place, FramePlace::Python).then(|| "/p/train.py".into());
            let source =
                SourceFrame { function: Some(function.into()), file, line: None, inlined: false };
            Frame { id: FrameId(0), place, source: vec![source] }
        };
        let frames: Vec<Frame> = functions.iter().map(frame).collect();
        CallStack::of_frames(&frames, false).torch_operator().map(|name| name.to_string())
    }

    #[test]
    fn the_outermost_operator_is_what_the_program_asked_for() {
        let cases: [(&[&str], Option<&str>); 6] = [
            (
                &[
                    "at::_ops::fill__Scalar::call",
                    "at::native::ones",
                    "at::_ops::ones::redispatch",
                    "at::_ops::ones::call(c10::ArrayRef<long>)",
                    "py step",
                ],
                Some("aten::ones"),
            ),
            // The backward pass has a thread of its own.
            (
                &[
                    "at::_ops::mul_Tensor::redispatch",
                    "at::_ops::mul_Tensor::call",
                    "torch::autograd::generated::MulBackward0::apply",
                    "torch::autograd::Node::operator()",
                ],
                Some("MulBackward0"),
            ),
            // A function of autograd's in Python, called by an operator.
            (
                &[
                    "at::_ops::add_Tensor::call",
                    "py backward",
                    "torch::autograd::PyNode::apply",
                    "at::_ops::_backward::call",
                    "py train",
                ],
                Some("aten::add_Tensor"),
            ),
            // A launch of the program's own below an operator that calls Python.
            (&["py launch", "at::_ops::relu::call", "py train"], Some("aten::relu")),
            (&["at::native::call", "at::_ops::call", "at::_ops::x::y::call", "py step"], None),
            (&["py at::_ops::ones::call"], None),
        ];
        for (frames, expected) in cases {
            assert_eq!(operator(frames).as_deref(), expected, "{frames:?}");
        }
    }
}
