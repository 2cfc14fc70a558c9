//! Stream memory operations, external semaphores, events of processes outside of the run.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "a wait for a value is behind the write of that value",
        "launch s1 k w:A
         write_value s1 V
         launch s1 k w:B
         wait_value s2 V
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 3",
    ),
    (
        "a wait is behind the write of a greater value, not of a smaller one",
        "launch s1 k w:A
         write_value s1 V=1
         launch s1 k w:B
         write_value s1 V=3
         launch s1 k w:C
         wait_value s2 V=2
         launch s2 k r:A
         launch s2 k r:B
         launch s2 k r:C  #~ race RAW 5",
    ),
    (
        "a write without barrier orders nothing",
        "launch s1 k w:A
         write_value s1 V no_barrier
         wait_value s2 V
         launch s2 k r:A  #~ race RAW 1 confidence=certain",
    ),
    (
        "of two writers a wait is behind what both are behind",
        "launch s0 k w:A
         record e s0
         wait s1 e
         wait s3 e
         launch s1 k w:B
         launch s3 k w:C
         write_value s1 V
         write_value s3 V
         wait_value s2 V
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 5
         launch s2 k r:C  #~ race RAW 6",
    ),
    (
        "a flag that is reset by who has waited for it is good for another round",
        "launch s1 k w:A
         write_value s1 V=1
         wait_value s2 V=1 eq
         launch s2 k r:A
         write_value s2 V=0
         wait_value s1 V=0 eq
         launch s1 k w:A
         write_value s1 V=1
         wait_value s2 V=1 eq
         launch s2 k r:A",
    ),
    (
        "a flag that is reset beside its second signal may still stand from the first",
        "launch s1 k w:A
         write_value s1 V=1
         wait_value s2 V=1 eq
         launch s2 k r:A
         record e s2
         wait s1 e
         write_value s1 V=0
         launch s1 k w:A
         write_value s1 V=1
         wait_value s2 V=1 eq
         launch s2 k r:A  #~ race RAW 8",
    ),
    (
        "a flag that is reset by a graph, again and again",
        "graph G
         node G n memset V
         instantiate G X
         launch s1 k w:A
         write_value s1 V
         wait_value s2 V eq
         launch s2 k r:A
         launch_graph X s2
         record e s2
         wait s1 e
         launch s1 k w:A
         write_value s1 V
         wait_value s2 V eq
         launch s2 k r:A
         launch_graph X s2
         record e s2
         wait s1 e
         launch s1 k w:A
         write_value s1 V
         wait_value s2 V eq
         launch s2 k r:A",
    ),
    (
        "a graph waits for a flag and resets it, again and again",
        "graph G
         node G w wait_value V eq
         node G k launch k r:A
         node G m memset V
         edge G w k
         edge G k m
         instantiate G X
         launch s1 k w:A
         write_value s1 V
         launch_graph X s2
         record e s2
         wait s1 e
         launch s1 k w:A
         write_value s1 V
         launch_graph X s2
         launch s1 k w:B
         launch_graph X s2
         launch s2 k r:B  #~ race RAW 16 confidence=possible",
    ),
    (
        "a reset at another address of the same memory",
        "alloc V 64 phys=M
         alloc W 64 phys=M
         launch s1 k w:A
         write_value s1 V
         wait_value s2 V eq
         launch s2 k r:A
         memset s2 W[0..4]
         record e s2
         wait s1 e
         launch s1 k w:A
         write_value s1 W
         wait_value s2 V eq
         launch s2 k r:A",
    ),
    (
        "what was written before the signal, and beside its word, resets nothing",
        "launch s1 k w:A ?:V
         write_value s1 V
         wait_value s2 V eq  #~ race RAW 1 confidence=possible
         launch s2 k r:A ?:V[4..64]
         launch s1 k w:B
         wait_value s2 V eq
         launch s2 k r:B  #~ race RAW 5 confidence=certain",
    ),
    (
        "who writes the flag beside its signal may have waited for it, or not",
        "launch s1 k w:A
         write_value s1 V
         launch s2 k w:V[0..4]  #~ race WAW 2 confidence=certain
         launch s1 k w:B
         wait_value s2 V eq
         launch s2 k r:B  #~ race RAW 4 confidence=possible",
    ),
    (
        "a part of the word may be reset, and all of it then is",
        "launch s1 k w:A
         write_value s1 V
         wait_value s2 V
         launch s1 k w:B
         memset s2 V[0..2]
         wait_value s2 V
         launch s2 k r:B  #~ race RAW 4 confidence=possible
         launch s1 k w:C
         memset s2 V
         wait_value s2 V
         launch s2 k r:C  #~ race RAW 8 confidence=possible",
    ),
    (
        "whom a wait without an earlier signal waits for is not known",
        "launch s1 k w:A
         wait_value s2 V
         launch s2 k r:A  #~ race RAW 1 confidence=possible
         launch s3 k r:A  #~ race RAW 1 confidence=certain",
    ),
    (
        "nor is it when the signal is issued later",
        "wait_value s2 V
         launch s2 k r:A
         launch s1 k w:A  #~ race WAR 2 confidence=possible
         write_value s1 V",
    ),
    (
        "what the host has seen done after the wait is not what it waits for",
        "wait_value s2 V
         launch s2 k r:A
         sync_stream s2
         launch s1 k w:B
         launch s3 k r:B  #~ race RAW 4 confidence=certain",
    ),
    (
        "the wait is carried by events and by the host",
        "launch s1 k w:A
         launch s1 k w:B
         wait_value s2 V
         record e s2
         wait s3 e
         launch s3 k r:A  #~ race RAW 1 confidence=possible
         sync_event e
         launch s4 k r:B  #~ race RAW 2 confidence=possible",
    ),
    (
        "a semaphore orders like a value, without the lint",
        "launch s1 k w:A
         signal s1 S=4
         launch s1 k w:B
         wait_signal s2 S=4
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 3
         wait s2 never     #~ lint wait-before-record",
    ),
    (
        "order by memory operations alone is a lint, once a pair of streams",
        "launch s1 k w:A
         write_value s1 V=1
         wait_value s2 V=1  #~ lint memop-only-order 2
         write_value s1 V=2
         wait_value s2 V=2
         launch s2 k r:A",
    ),
    (
        "an event of somebody outside",
        "event e imported
         launch s1 k w:A
         wait s2 e
         launch s2 k r:A  #~ race RAW 2 confidence=possible
         launch s3 k r:A  #~ race RAW 2 confidence=certain",
    ),
    (
        "the host waits for an event of somebody outside",
        "event e imported
         launch s1 k w:A
         sync_event e
         launch s2 k r:A  #~ race RAW 2 confidence=possible",
    ),
    (
        "a context waits for an event of somebody outside",
        "event e imported
         launch s1 k w:A
         wait_ctx c0 e
         launch s2 k r:A  #~ race RAW 2 confidence=possible",
    ),
    (
        "a semaphore orders processes, and what the host did before it",
        "alloc A 64
         P2: import X P1/A
         launch s1 k w:A
         signal s1 S
         P2: wait_signal s1 S
         P2: launch s1 k r:X",
    ),
    (
        "what another process has seen done it may have told",
        "alloc A 64
         P2: import X P1/A
         launch s1 k w:A
         sync_stream s1
         P2: launch s1 k r:X  #~ race RAW 3 confidence=possible",
    ),
    (
        "nodes of graphs signal and wait",
        "graph G
         node G n launch k w:A
         node G m write_value V
         edge G n m
         node G o launch k w:B
         graph H
         node H n wait_value V
         node H m launch k r:A r:B  # the write of B is not before the signal
         edge H n m
         instantiate G X
         instantiate H Y
         launch_graph X s1
         launch_graph Y s2          #~ race RAW 12 in=B",
    ),
];
