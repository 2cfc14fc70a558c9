//! Calls that cannot do what they seem to.

use super::Case;

pub(crate) const CASES: &[Case] = &[
    (
        "waits for an event that was never recorded",
        "wait s1 e      #~ lint wait-before-record
         sync_event f   #~ lint wait-before-record
         query_event g
         wait_ctx c0 h  #~ lint wait-before-record
         record e s2
         wait s1 e
         destroy_event e",
    ),
    (
        "an event recorded on two streams before anybody waits",
        "launch s1 k w:A
         record e s1
         launch s2 k w:B
         record e s2      #~ lint event-rerecorded 2
         wait s3 e
         wait s4 e
         launch s3 k r:B",
    ),
    (
        "an event used over and over",
        "record e s1
         wait s3 e
         record e s2
         wait s3 e
         record e s2
         record e s2
         wait s3 e
         record f s1
         wait s2 f
         record f s2
         wait s4 f
         record g s1
         sync_stream s1
         record g s2
         wait s4 g
         wait s5 never    #~ lint wait-before-record",
    ),
    (
        "the host waits for an event recorded on two streams",
        "record e s1
         record e s2    #~ lint event-rerecorded 1
         sync_event e",
    ),
    (
        "the legacy stream beside a non-blocking stream, once a pair",
        "launch s1 k w:A
         launch legacy k w:B  #~ lint legacy-beside-nonblocking 1
         launch s1 k w:A
         launch legacy k w:B
         launch s2 k w:C
         sync_stream s2
         launch legacy k w:B
         launch s2 k w:C
         record e s2
         wait legacy e
         launch legacy k w:B
         launch s2 k w:C
         memset_sync B        #~ lint legacy-beside-nonblocking 12",
    ),
];
