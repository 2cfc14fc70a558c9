//! Hand-made records and what must come of them.

mod arrays;
mod batches;
mod bench;
mod captures;
mod collectives;
mod contexts;
mod copies;
mod global_pointers;
mod graph_memory;
mod graphs;
mod host;
mod kernel_code;
mod launches;
mod lifetimes;
mod managed;
mod mappings;
mod members;
mod node_kernels;
mod pools;
mod sharing;
mod signals;
mod sync_memops;
mod tensor_maps;
