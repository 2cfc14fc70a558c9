"""One mistake, in a helper, that two tests make: one finding, which both of them have."""

from driver import round_trip


def helper(with_wait):
    # With the two below it, as many functions as a finding's id has.
    round_trip(with_wait)


def test_first_by_helper():
    helper(with_wait=False)
    helper(with_wait=False)


def test_clean_by_helper():
    helper(with_wait=True)


def test_second_by_helper():
    helper(with_wait=False)
