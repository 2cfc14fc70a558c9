//! The Rust programs under test, in one executable, so that a build links once. Which one runs is
//! said by the name of the link through which it is started, or else by its first argument:
//! `programs NAME racy|clean`. Without arguments it lists the names.
#![forbid(unsafe_code)]

mod allocation_between_streams;
mod array_boxes;
mod array_read_early;
mod atomic_histogram;
mod batch_overlap;
mod batch_source_during_call;
mod callback_launches_next;
mod captured_branches;
mod chunk_pipeline;
mod context_event;
mod context_wait;
mod copy_vs_memset;
mod destroyed_stream;
mod event_of_other_context;
mod event_rerecorded;
mod event_timing;
mod expired_record;
mod free_in_flight;
mod graph_child;
mod graph_disabled_node;
mod graph_event_record;
mod graph_event_wait;
mod graph_kernels_branches;
mod graph_kernels_child;
mod graph_kernels_cloned;
mod graph_kernels_conditional;
mod graph_kernels_input;
mod graph_kernels_output;
mod graph_kernels_set_parameters;
mod graph_kernels_update;
mod graph_memory;
mod graph_memory_reused;
mod graph_set_parameters;
mod graph_then_stream;
mod graph_two_executables;
mod graph_unordered_nodes;
mod graph_update;
mod graph_upload;
mod legacy_default_stream;
mod legacy_memset;
mod managed_two_streams;
mod mapped_alias;
mod mapped_two_halves;
mod matrix_columns;
mod offset_halves;
mod overlapping_columns;
mod pageable_copy_tail;
mod per_thread_default_stream;
mod ping_pong;
mod pinned_read_early;
mod pinned_reused_early;
mod pointer_table;
mod pool_reuse;
mod query_loop;
mod shared_input;
mod short_lived_streams;
mod stream_priority;
mod stream_value;
mod stream_value_reset;
mod sync_memops;
mod two_contexts;
mod two_threads_one_stream;
mod unmapped_in_flight;
mod unregistered_in_flight;
mod use_after_free;
mod use_before_alloc;
mod wait_before_record;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use program_support::{Failure, Variant, run};

type Program = fn(Variant) -> Result<(), Failure>;

const PROGRAMS: [(&str, Program); 67] = [
    ("allocation_between_streams", allocation_between_streams::program),
    ("array_boxes", array_boxes::program),
    ("array_read_early", array_read_early::program),
    ("atomic_histogram", atomic_histogram::program),
    ("batch_overlap", batch_overlap::program),
    ("batch_source_during_call", batch_source_during_call::program),
    ("callback_launches_next", callback_launches_next::program),
    ("captured_branches", captured_branches::program),
    ("chunk_pipeline", chunk_pipeline::program),
    ("context_event", context_event::program),
    ("context_wait", context_wait::program),
    ("copy_vs_memset", copy_vs_memset::program),
    ("destroyed_stream", destroyed_stream::program),
    ("event_of_other_context", event_of_other_context::program),
    ("event_rerecorded", event_rerecorded::program),
    ("event_timing", event_timing::program),
    ("expired_record", expired_record::program),
    ("free_in_flight", free_in_flight::program),
    ("graph_child", graph_child::program),
    ("graph_disabled_node", graph_disabled_node::program),
    ("graph_event_record", graph_event_record::program),
    ("graph_event_wait", graph_event_wait::program),
    ("graph_kernels_branches", graph_kernels_branches::program),
    ("graph_kernels_child", graph_kernels_child::program),
    ("graph_kernels_cloned", graph_kernels_cloned::program),
    ("graph_kernels_conditional", graph_kernels_conditional::program),
    ("graph_kernels_input", graph_kernels_input::program),
    ("graph_kernels_output", graph_kernels_output::program),
    ("graph_kernels_set_parameters", graph_kernels_set_parameters::program),
    ("graph_kernels_update", graph_kernels_update::program),
    ("graph_memory", graph_memory::program),
    ("graph_memory_reused", graph_memory_reused::program),
    ("graph_set_parameters", graph_set_parameters::program),
    ("graph_then_stream", graph_then_stream::program),
    ("graph_two_executables", graph_two_executables::program),
    ("graph_unordered_nodes", graph_unordered_nodes::program),
    ("graph_update", graph_update::program),
    ("graph_upload", graph_upload::program),
    ("legacy_default_stream", legacy_default_stream::program),
    ("legacy_memset", legacy_memset::program),
    ("managed_two_streams", managed_two_streams::program),
    ("mapped_alias", mapped_alias::program),
    ("mapped_two_halves", mapped_two_halves::program),
    ("matrix_columns", matrix_columns::program),
    ("offset_halves", offset_halves::program),
    ("overlapping_columns", overlapping_columns::program),
    ("pageable_copy_tail", pageable_copy_tail::program),
    ("per_thread_default_stream", per_thread_default_stream::program),
    ("ping_pong", ping_pong::program),
    ("pinned_read_early", pinned_read_early::program),
    ("pinned_reused_early", pinned_reused_early::program),
    ("pointer_table", pointer_table::program),
    ("pool_reuse", pool_reuse::program),
    ("query_loop", query_loop::program),
    ("shared_input", shared_input::program),
    ("short_lived_streams", short_lived_streams::program),
    ("stream_priority", stream_priority::program),
    ("stream_value", stream_value::program),
    ("stream_value_reset", stream_value_reset::program),
    ("sync_memops", sync_memops::program),
    ("two_contexts", two_contexts::program),
    ("two_threads_one_stream", two_threads_one_stream::program),
    ("unmapped_in_flight", unmapped_in_flight::program),
    ("unregistered_in_flight", unregistered_in_flight::program),
    ("use_after_free", use_after_free::program),
    ("use_before_alloc", use_before_alloc::program),
    ("wait_before_record", wait_before_record::program),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let called = arguments.next().unwrap_or_default();
    let mut arguments: Vec<OsString> = arguments.collect();
    let by = |name: &OsString| PROGRAMS.iter().find(|(own, _)| name == own);
    let link = Path::new(&called).file_name().unwrap_or_default().to_owned();
    if let Some((name, program)) = by(&link) {
        return run(name, &arguments, *program);
    }
    if arguments.is_empty() {
        for (name, _) in PROGRAMS {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    }
    let name = arguments.remove(0);
    match by(&name) {
        Some((name, program)) => run(name, &arguments, *program),
        None => {
            eprintln!("no program is called {}", name.display());
            ExitCode::from(2)
        }
    }
}
