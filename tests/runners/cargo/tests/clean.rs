//! Nothing to find.

#[test]
fn with_a_wait() {
    gpu_pipeline::round_trip(true);
}

#[test]
fn on_the_host_alone() {
    assert_eq!([1, 2].iter().sum::<i32>(), 3);
}
