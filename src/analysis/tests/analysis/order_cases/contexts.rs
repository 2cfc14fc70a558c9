//! Green contexts.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "synchronizing a primary context covers its green contexts",
        "context g1 green=c0
         stream g1/s1 nonblocking
         alloc_pinned A 64
         launch g1/s1 k w:A
         sync_ctx
         host r:A",
    ),
    (
        "synchronizing a green context covers that one only",
        "context g1 green=c0
         context g2 green=c0
         alloc_pinned A 64
         alloc_pinned B 64
         alloc_pinned C 64
         launch g1/s1 k w:A
         launch g2/s1 k w:B
         launch s0 k w:C
         sync_ctx g1
         host r:A
         host r:B      #~ race RAW 7
         host r:C      #~ race RAW 8",
    ),
    (
        "an event recorded on a primary context captures its green contexts",
        "context g1 green=c0
         launch g1/s1 k w:A
         record_ctx e c0
         launch g1/s1 k w:B
         wait s2 e
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 4",
    ),
    (
        "an event recorded on a green context captures that one only",
        "context g1 green=c0
         launch g1/s1 k w:A
         launch s0 k w:B
         record_ctx e g1
         wait s2 e
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 3",
    ),
    (
        "a primary context holds back its green contexts, later ones too",
        "context g1 green=c0
         context g2 green=c0
         launch g1/s1 k r:B
         launch s0 k w:A
         record e s0
         wait_ctx c0 e
         launch g1/s1 k r:A
         launch g2/s1 k r:A",
    ),
    (
        "a green context holds back that one only",
        "context g1 green=c0
         context g2 green=c0
         launch s0 k w:A
         record e s0
         wait_ctx g1 e
         launch g1/s1 k r:A
         launch g2/s1 k r:A  #~ race RAW 3
         launch s2 k r:A    #~ race RAW 3",
    ),
];
