//! The built library under test, as programs meet it: each trial starts this very binary again
//! with `libcuda.so.1` in its library path and a scenario to run, because a process has one driver
//! and one policy. A scenario prints what it saw; the table below says what that is under which
//! policy.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod programs;
mod raw;
mod refusals;
mod scenarios;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Failed, Trial};

const SCENARIO: &str = "STREAMSAN_SIM_TEST_SCENARIO";

/// Scenario, policy, and the words it prints.
const TABLE: &[(&str, &str, &str)] = &[
    ("missing_wait", "eager", "new"),
    ("missing_wait", "lazy", "old"),
    ("missing_wait", "starve:1", "old"),
    ("missing_wait", "starve:2", "new"),
    ("event_orders_two_streams", "eager", "new"),
    ("event_orders_two_streams", "lazy", "new"),
    ("event_orders_two_streams", "starve:1", "new"),
    ("event_orders_two_streams", "random:1", "new"),
    ("event_orders_two_streams", "random:2", "new"),
    ("wait_keeps_the_record_it_was_made_with", "eager", "2"),
    ("wait_keeps_the_record_it_was_made_with", "lazy", "1"),
    ("wait_outlives_its_event", "lazy", "1"),
    ("wait_on_an_event_never_recorded_waits_for_nothing", "eager", "1"),
    ("wait_on_an_event_never_recorded_waits_for_nothing", "lazy", "0"),
    ("legacy_stream_waits_for_blocking_streams_only", "eager", "1 1 1"),
    ("legacy_stream_waits_for_blocking_streams_only", "lazy", "1 0 1"),
    ("blocking_streams_wait_for_the_legacy_stream", "lazy", "1 0"),
    ("per_thread_stream_is_not_the_legacy_stream", "lazy", "0 1"),
    ("pinned_source_is_read_late_pageable_at_the_call", "eager", "1 1"),
    ("pinned_source_is_read_late_pageable_at_the_call", "lazy", "2 1"),
    ("early_read_of_a_download", "eager", "1 1"),
    ("early_read_of_a_download", "lazy", "0 1"),
    ("synchronous_copies_wait_where_the_manual_says", "lazy", "1 0 1 1"),
    ("context_synchronize_reaches_every_stream", "lazy", "1 1"),
    ("context_event_holds_every_stream", "lazy", "1 1"),
    ("destroyed_stream_completes", "lazy", "1"),
    ("freed_block_is_reused_when_its_free_has_run", "lazy", "same-stream other-fresh then-reused"),
    (
        "freed_block_is_reused_when_its_free_has_run",
        "eager",
        "same-stream other-reused then-reused",
    ),
    ("free_async_takes_plain_memory_when_it_runs", "lazy", "1 1"),
    ("host_functions", "eager", "order 1 2 3 refused 800 status 0 thread other"),
    ("host_functions", "lazy", "order 1 2 3 refused 800 status 0 thread other"),
    ("host_functions", "random:3", "order 1 2 3 refused 800 status 0 thread other"),
    ("host_function_may_wait_for_the_submitting_thread", "eager", "1"),
    ("host_function_may_wait_for_the_submitting_thread", "lazy", "1"),
    ("spinning_on_pinned_memory_ends", "eager", "1"),
    ("spinning_on_pinned_memory_ends", "lazy", "1"),
    ("spinning_on_pinned_memory_ends", "starve:1", "1"),
    ("spinning_behind_a_long_queue_ends", "lazy", "1"),
    ("sleeping_until_a_host_function_wakes_ends", "lazy", "1"),
    ("polling_ends", "eager", "at-once"),
    ("polling_ends", "lazy", "later"),
    ("polling_ends", "random:5", "in-the-end"),
    ("elapsed_time_is_of_the_device", "eager", "positive"),
    ("elapsed_time_is_of_the_device", "lazy", "positive"),
    ("copies_of_two_and_three_dimensions", "eager", "2d 3d"),
    ("copies_of_two_and_three_dimensions", "lazy", "2d 3d"),
    ("memsets_of_every_width", "eager", "ok"),
    ("pointer_attributes", "eager", "ok"),
    ("registered_memory", "lazy", "1 713"),
    ("managed_memory", "lazy", "5"),
    ("pool_attributes_and_trim", "lazy", "ok"),
    ("context_stack", "eager", "ok"),
    ("two_contexts_do_not_wait_for_each_other", "lazy", "0 1"),
    ("primary_context_survives_in_name", "eager", "ok"),
    ("a_forked_child_is_refused", "lazy", "3 3 0"),
    ("proc_addresses_are_the_exported_ones", "eager", "ok"),
    ("export_tables_are_not_found", "eager", "500 500"),
    ("status_texts", "eager", "CUDA_ERROR_INVALID_VALUE CUDA_SUCCESS 1"),
    ("two_threads_share_a_stream", "eager", "800"),
    ("two_threads_share_a_stream", "lazy", "800"),
    ("queue_is_bounded", "lazy", "ok"),
    ("refusals", "eager", "ok"),
    ("refusals", "lazy", "ok"),
    ("kernel_adds", "eager", "ok"),
    ("kernel_adds", "lazy", "ok"),
    ("kernel_adds", "random:7", "ok"),
    ("packed_parameters", "eager", "42"),
    ("module_variables", "eager", "7 71"),
    ("library_kernels", "eager", "put 2 12345 7"),
    ("occupancy", "eager", "ok"),
    ("kernel_out_of_bounds_poisons_its_context", "eager", "0 700 700 700 0"),
    ("kernel_out_of_bounds_poisons_its_context", "lazy", "0 700 700 700 0"),
    ("kernel_waits_for_the_host", "eager", "9"),
    ("kernel_waits_for_the_host", "lazy", "9"),
    ("kernel_waits_for_another_stream", "lazy", "9"),
    ("peer_memory_needs_access", "eager", "700 ok"),
    ("images", "eager", "ok"),
    ("launch_with_attributes", "eager", "0 0 801 400 1"),
    ("sync_memops", "lazy", "1 1 1"),
    ("graph_with_edges", "eager", "7 9"),
    ("graph_with_edges", "lazy", "7 9"),
    ("graph_with_edges", "random:3", "7 9"),
    ("graph_without_an_edge", "eager", "7"),
    ("graph_without_an_edge", "lazy", "0"),
    ("graph_launches_are_in_order", "lazy", "1"),
    ("graph_is_behind_its_stream_and_before_what_follows", "lazy", "5 8"),
    ("graph_queries", "eager", "ok"),
    ("graph_node_parameters", "lazy", "2 3 0 3"),
    ("graph_kernels_of_libraries", "eager", "6"),
    ("graph_update", "eager", "4 910 2 910 3"),
    ("graph_child_and_clone", "lazy", "7 1"),
    ("graph_conditions", "lazy", "[6, 7, 9]"),
    ("graph_events", "lazy", "1 0 1"),
    ("graph_memory", "lazy", "5 1 0 0 1 0"),
    ("graph_memory_twice", "lazy", "5 6 true false 1 0"),
    ("graph_memory_twice", "eager", "5 6 true false 1 0"),
    ("graph_refusals", "eager", "ok"),
    ("capture_makes_the_graph_of_the_calls", "eager", "ok"),
    ("capture_forks_and_joins", "eager", "1 1"),
    ("capture_forks_and_joins", "lazy", "1 1"),
    ("capture_forks_and_joins", "random:2", "1 1"),
    ("capture_without_a_wait", "eager", "1"),
    ("capture_without_a_wait", "lazy", "0"),
    ("capture_of_memory", "lazy", "3 10 1 11"),
    ("capture_into_a_graph", "lazy", "2 1"),
    ("capture_rules", "eager", "ok"),
    ("capture_rules", "lazy", "ok"),
    ("capture_modes_of_threads", "eager", "900 0 0 0"),
    ("capture_information", "eager", "ok"),
    ("work_of_ended_threads_completes", "lazy", "400"),
    ("value_words", "eager", "3 5 9"),
    ("value_words", "lazy", "3 5 9"),
    ("value_words", "random:4", "3 5 9"),
    ("value_word_written_by_the_program", "lazy", "1"),
    ("value_words_refused", "eager", "ok"),
    ("value_words_in_a_graph", "lazy", "7 12"),
    ("batch_of_copies", "eager", "1 2"),
    ("batch_of_copies", "lazy", "1 2"),
    ("batch_entries_are_not_ordered", "eager", "1"),
    ("batch_entries_are_not_ordered", "lazy", "0"),
    ("batch_sources", "lazy", "2 1 1"),
    ("programmatic_launch", "eager", "1 1 2"),
    ("programmatic_launch", "lazy", "0 1 2"),
    ("programmatic_events", "lazy", "0 1"),
    ("programmatic_edge", "lazy", "0 1 1"),
    ("programmatic_event_captured", "lazy", "1 1 0 1 1 1"),
    ("array_copies", "eager", "ok"),
    ("array_copies", "lazy", "ok"),
    ("array_refusals", "eager", "ok"),
    ("mappings_share_physical_memory", "eager", "7 5"),
    ("mappings_share_physical_memory", "lazy", "7 5"),
    ("mapping_refusals", "eager", "ok"),
    ("physical_memory_is_exported_and_imported", "lazy", "6 1"),
    ("managed_batches", "lazy", "4 1"),
    ("green_contexts", "lazy", "1 0 2 709"),
    ("green_resources", "eager", "ok"),
    ("peer_launch_on_all_devices", "lazy", "1 7 101"),
    ("peer_launch_on_all_devices_unordered", "lazy", "0 7 101"),
    ("cudarc_safe_api", "eager", "ok"),
    ("cudarc_safe_api", "lazy", "ok"),
    ("cudarc_safe_api", "starve:1", "ok"),
    ("cudarc_safe_api", "random:11", "ok"),
];

fn main() -> ExitCode {
    if let Ok(scenario) = env::var(SCENARIO) {
        scenarios::run(&scenario);
        return ExitCode::SUCCESS;
    }
    // Cargo has built it beside this binary.
    let library = env::current_exe().expect("own path").with_file_name("libstreamsan_sim.so");
    let layout = tempfile::tempdir().expect("a temporary directory");
    for name in ["libcuda.so", "libcuda.so.1"] {
        fs::copy(&library, layout.path().join(name)).expect("the library was built");
    }
    let at = layout.path().to_owned();
    let mut trials: Vec<Trial> = TABLE
        .iter()
        .map(|(scenario, policy, expected)| {
            let at = at.clone();
            Trial::test(format!("{scenario} under {policy}"), move || {
                let output = start(&at, scenario, policy);
                check(&output, expected)
            })
        })
        .collect();
    let again = at.clone();
    // Six streams write a word; two nodes of a graph race for one.
    for (scenario, least) in [("unordered_writes", 3), ("graph_without_an_edge", 2)] {
        let at = again.clone();
        let name = format!("random seeds repeat and differ: {scenario}");
        trials.push(Trial::test(name, move || seeds(&at, scenario, least)));
    }
    trials.extend(programs::trials(&at));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Environment under which a program finds the simulated driver.
pub(crate) fn simulated(program: &Path, layout: &Path, policy: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", layout).env("STREAMSAN_SIM_POLICY", policy);
    command
}

fn start(layout: &Path, scenario: &str, policy: &str) -> Output {
    let executable = env::current_exe().expect("the path of this binary");
    let devices = if scenario.starts_with("peer") { "2" } else { "1" };
    simulated(&executable, layout, policy)
        .env(SCENARIO, scenario)
        .env("STREAMSAN_SIM_DEVICES", devices)
        .output()
        .expect("this binary starts")
}

pub(crate) fn check(output: &Output, expected: &str) -> Result<(), Failed> {
    let printed = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && printed.trim_end() == expected {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}\nexpected: {expected}\nprinted: {printed}\n{said}", output.status).into())
}

/// A racy scenario ends the same under the same seed, and not the same under all of them.
fn seeds(layout: &Path, scenario: &str, least: usize) -> Result<(), Failed> {
    let mut endings = Vec::new();
    for seed in 0..12 {
        let policy = format!("random:{seed}");
        let once = start(layout, scenario, &policy);
        let twice = start(layout, scenario, &policy);
        check(&twice, String::from_utf8_lossy(&once.stdout).trim_end())?;
        endings.push(once.stdout);
    }
    endings.sort();
    endings.dedup();
    if endings.len() < least {
        return Err(format!("12 seeds had {} different endings", endings.len()).into());
    }
    Ok(())
}
