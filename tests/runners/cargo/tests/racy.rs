//! One of the two races, and passes all the same: only streamsan sees it.

#[test]
fn without_a_wait() {
    gpu_pipeline::round_trip(false);
}

#[test]
fn beside_it_a_clean_one() {
    gpu_pipeline::round_trip(true);
}
