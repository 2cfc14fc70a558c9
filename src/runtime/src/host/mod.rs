//! Actions of host threads beside driver calls: annotations, names, instrumented loads and stores,
//! synchronisation, touches of fenced memory, cuFile, NCCL.

mod annotations;
mod cufile;
pub(crate) mod fences;
pub(crate) mod interest;
mod library;
mod nccl;
mod nvtx;
mod nvtx_memory;
mod nvtx_ranges;
mod nvtx_text;
mod operands;
mod publish;
mod threads;
pub(crate) mod touched;
mod verbs;

pub(crate) use cufile::substitute as substitute_cufile;
pub(crate) use nccl::substitute as substitute_nccl;
pub(crate) use verbs::substitute as substitute_verbs;
