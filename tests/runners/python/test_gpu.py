"""Both pass: only streamsan sees that the first one races."""

from driver import round_trip


def test_without_a_wait():
    round_trip(with_wait=False)


def test_with_a_wait():
    round_trip(with_wait=True)
