//! Batches of file transfers, and stream pools.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "a batch of file transfers is behind what the host knew and before who sees it complete",
        "launch s1 k w:A
         sync_stream s1
         file_batch b r:A w:B
         file_batch_done b
         launch s2 k rw:A r:B",
    ),
    (
        "a batch of file transfers is in no stream",
        "launch s1 k w:A
         file_batch b r:A w:B  #~ race RAW 1
         sync_ctx
         launch s1 k r:B       #~ race RAW 2
         file_batch_done b
         launch s1 k r:B",
    ),
    (
        "memory is freed under a batch of file transfers",
        "alloc A 64
         file_batch b w:A
         free A  #~ race UAF 2 class=free-in-flight",
    ),
    (
        "asynchronous file transfers are operations of their stream",
        "launch s1 k w:A
         file_write_async s1 A
         launch s1 k w:A
         launch s2 k w:A  #~ race WAW 3",
    ),
    (
        "what only a stream pool orders is a lint",
        "launch s1 k w:A
         launch s1 k w:A
         hand_out s1
         launch s1 k r:A   #~ lint pooled-stream-alias
         launch s1 k w:A   #~ lint pooled-stream-alias",
    ),
    (
        "without hand_out it is stream order",
        "launch s1 k w:A
         launch s1 k r:A",
    ),
    (
        "what the host has seen done is ordered whoever has the stream",
        "launch s1 k w:A
         sync_stream s1
         hand_out s1
         launch s1 k w:A
         launch s2 k w:B
         record e s2
         hand_out s1
         wait s1 e
         launch s1 k r:B
         launch s1 k w:A   #~ lint pooled-stream-alias",
    ),
    (
        "an event of the new user carries the lint on",
        "launch s1 k w:A
         hand_out s1
         record e s1
         wait s2 e
         launch s2 k r:A   #~ lint pooled-stream-alias",
    ),
    (
        "a context synchronization includes the former users",
        "launch s1 k w:A
         hand_out s1
         sync_ctx
         launch s2 k r:A
         host r:A
         wait s1 never     #~ lint wait-before-record",
    ),
    (
        "the legacy stream includes the former users",
        "stream b
         launch b k w:A
         hand_out b
         launch legacy k r:A
         wait s1 never     #~ lint wait-before-record",
    ),
];
