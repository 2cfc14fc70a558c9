//! Processes, and host threads apart from each other.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "an event of another process carries its stream's work",
        "alloc A 64
         P2: import X P1/A
         launch s1 k w:A
         record e s1
         P2: wait s1 e
         P2: launch s1 k r:X
         launch s1 k w:A   #~ race WAR 6",
    ),
    (
        "two processes' streams of one name are not one stream",
        "alloc A 64
         P2: import X P1/A
         launch s1 k w:A
         P2: launch s1 k r:X  #~ race RAW 3",
    ),
    (
        "with strict host threads what one thread has waited for does not order another",
        "option strict_host_threads
         launch s1 k w:A
         T2: sync_stream s1
         T2: launch s2 k r:A
         T3: launch s3 k r:A  #~ race RAW 2",
    ),
    (
        "only who knows that a copy from pageable memory has returned meets its tail",
        "option strict_host_threads
         pageable H 1048576
         alloc A 1048576
         copy_sync dst:A src:H
         T2: launch s2 k r:A  #~ race RAW 4 class=legacy-vs-nonblocking
         release m
         T3: acquire m
         T3: launch s3 k r:A  #~ race RAW 4 class=pageable-copy-tail",
    ),
    (
        "with strict host threads a release and an acquire do",
        "option strict_host_threads
         launch s1 k w:A
         T2: sync_stream s1
         T2: release m
         T3: acquire m
         T3: launch s3 k r:A",
    ),
    (
        "what is released before says nothing of what comes behind",
        "option strict_host_threads
         T2: release m
         launch s1 k w:A
         T2: sync_stream s1
         T3: acquire m
         T3: launch s3 k r:A  #~ race RAW 3",
    ),
    (
        "a thread's own accesses are before what it launches, not before what others launch",
        "option strict_host_threads
         alloc_pinned A 64
         host w:A
         launch s1 k r:A
         T2: launch s2 k r:A  #~ race RAW 3",
    ),
    (
        "the order of a stream carries what its threads did",
        "option strict_host_threads
         alloc_pinned A 64
         alloc_pinned B 64
         host w:A
         launch s1 k r:B
         T2: launch s1 k r:A
         T2: record e s1
         T3: wait s3 e
         T3: launch s3 k r:A",
    ),
    (
        "synchronizing a context carries what the issuers did",
        "option strict_host_threads
         alloc_pinned A 64
         host w:A
         launch s1 k r:A
         T2: sync_ctx
         T2: launch s2 k r:A",
    ),
    (
        "what a host function does is behind its stream's work and before what comes behind it",
        "alloc_pinned A 64
         launch s1 k w:A
         host_fn s1
         launch s1 k w:A
         record e s1
         wait s2 e
         launch s2 k rw:A
         run_host_fn 3 rw:A
         launch s1 k w:A   #~ race WAW 7",
    ),
    (
        "what a host function does is not before what runs beside its stream",
        "alloc_pinned A 64
         launch s1 k w:A
         host_fn s1
         launch s2 k r:A       #~ race RAW 2
         run_host_fn 3 w:A     #~ race WAR 4",
    ),
    (
        "with strict host threads a host function is before what its stream does later",
        "option strict_host_threads
         alloc_pinned A 64
         launch s1 k w:A
         host_fn s1
         launch s1 k r:A
         T2: run_host_fn 4 rw:A
         launch s1 k w:A
         launch s2 k r:A       #~ race RAW 7",
    ),
];
