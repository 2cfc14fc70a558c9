//! The pages on the classes of findings, so that their examples in Rust are compiled as
//! documentation tests. Pages without Rust are left out; `tests/corpus/pages.rs` holds that the list
//! is complete.

macro_rules! pages {
    ($($name:ident $page:literal)*) => {
        $(
            #[doc = include_str!(concat!("../../../docs/findings/", $page, ".md"))]
            mod $name {}
        )*
    };
}

pages! {
    missing_wait "missing-wait"
    stale_wait "stale-wait"
    wrong_stream_wait "wrong-stream-wait"
    event_rerecorded "event-rerecorded"
    wait_before_record "wait-before-record"
    legacy_vs_nonblocking "legacy-vs-nonblocking"
    host_read_early "host-read-early"
    host_buffer_reuse "host-buffer-reuse"
    use_before_alloc "use-before-alloc"
    use_after_free "use-after-free"
    free_in_flight "free-in-flight"
    allocator_reuse "allocator-reuse"
    graph_unordered "graph-unordered"
    peer_unordered "peer-unordered"
    legacy_beside_nonblocking "legacy-beside-nonblocking"
    pageable_copy_tail "pageable-copy-tail"
}
