//! The options of the command line.

mod arguments;
mod color;
mod findings;
mod host_accesses;
mod mcp;
mod measure;
mod offset;
mod policy;
mod report_file;
mod size;
mod stacks;
mod torch_allocator;
mod trace_name;

pub(crate) use arguments::{
    CheckOptions, Command, CompletionsOptions, DemoOptions, DoctorOptions, KernelsOptions,
    ManOptions, RunOptions, SettleOptions, StatsOptions, ThresholdOption, ViewOptions, grammar,
    parse,
};
pub(crate) use color::Coloring;
pub(crate) use findings::{
    AdviseOptions, DiffOptions, ExplainOptions, ExportFormat, ExportOptions, GateOptions, Listed,
    SuppressOptions,
};
pub(crate) use host_accesses::HostAccesses;
pub(crate) use mcp::McpOptions;
pub(crate) use measure::{Measure, Settle};
pub(crate) use offset::Offset;
pub(crate) use policy::SimPolicy;
pub(crate) use report_file::{ReportFile, ReportFormat};
pub(crate) use size::Size;
pub(crate) use stacks::Stacks;
pub(crate) use torch_allocator::TorchAllocator;
pub(crate) use trace_name::expand;
