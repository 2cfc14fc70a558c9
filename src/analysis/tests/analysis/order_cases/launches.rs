//! Events that launches record, launches on several devices.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "a programmatic event captures what is before the kernel, not the kernel",
        "launch s1 before w:A
         launch s1 kernel w:B programmatic_event=e
         wait s2 e
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 2 class=stale-wait",
    ),
    (
        "a launch completion event likewise",
        "launch s1 before w:A
         launch s1 kernel w:B completion_event=e
         wait s2 e
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 2",
    ),
    (
        "the event of a kernel that triggers early captures what its primary is behind",
        "launch s1 before w:A
         launch s1 primary w:B
         launch s1 kernel w:C pdl pdl_wait pdl_trigger=early programmatic_event=e
         wait s2 e
         launch s2 k r:A
         launch s2 k r:B  #~ race RAW 2
         launch s2 k r:C  #~ race RAW 3",
    ),
    (
        "a launch on several devices waits for all its streams and holds all of them back",
        "context D1
         launch s1 k w:A
         launch D1/s2 k w:B
         launch_multi s1 m r:B w:C & D1/s2 m r:A w:D
         launch s1 k r:D
         launch D1/s2 k r:C",
    ),
    (
        "without the wait before",
        "context D1
         launch s1 k w:A
         launch D1/s2 k w:B
         launch_multi no_pre s1 m r:B w:C & D1/s2 m r:A w:D  #~ race RAW 2; race RAW 3
         launch s1 k r:D
         launch D1/s2 k r:C",
    ),
    (
        "without holding back after",
        "context D1
         launch s1 k w:A
         launch D1/s2 k w:B
         launch_multi no_post s1 m r:B w:C & D1/s2 m r:A w:D
         launch s1 k r:D     #~ race RAW 4
         launch D1/s2 k r:C  #~ race RAW 4",
    ),
];
