//! The simulated driver behind the C interface: its state, its rules of order, and how its
//! operations run. Safe code throughout; handles and addresses are plain numbers here.

mod allocate;
mod array;
mod batch;
mod capture;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod function;
mod graph;
mod green;
mod host_call;
mod image;
mod launch;
mod library;
mod module;
mod order;
mod pointer;
mod pool;
mod run;
mod sim;
mod state;
mod stream;
mod thread;
mod virtual_memory;
mod words;
mod work;

pub(crate) use array::ArrayShape;
pub(crate) use batch::{BatchEntry, SourceOrder};
pub(crate) use capture::{CaptureInfo, CaptureMode};
pub(crate) use copy::{CopyEnd, CopySpec, Issue, Role};
pub(crate) use device::{TOTAL_MEMORY, device_attribute};
pub(crate) use fill::FillSpec;
pub(crate) use function::FunctionRef;
pub(crate) use graph::{
    AllocNode, COPY_WORDS, CopyNode, Edge, EdgeData, FillNode, HostNode, KernelNode, NodeKind,
    NodeSpec, WordsNode, all_plain,
};
pub(crate) use host_call::{HostCall, HostForm};
pub(crate) use image::{FATBIN_MAGIC, Refusal};
pub(crate) use launch::{LaunchSpec, Parameters};
pub(crate) use pointer::{PointerAnswer, PointerAttribute};
pub(crate) use pool::PoolAttribute;
pub(crate) use sim::{Call, Sim, say};
pub(crate) use stream::{DefaultStream, GREATEST_PRIORITY};
pub(crate) use thread::in_callback;
pub(crate) use virtual_memory::GRANULARITY;
pub(crate) use words::{WordAction, WordOp};
