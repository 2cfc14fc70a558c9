"""All pass without streamsan. Which of them race with it, the names say."""

import pytest
import streamsan
from driver import Pipeline, round_trip


def test_clean():
    round_trip(with_wait=True)


def test_racy():
    with streamsan.region("step"), streamsan.region("copies"):
        round_trip(with_wait=False)


class TestInAClass:
    @pytest.mark.parametrize("with_wait", [True, False], ids=["clean", "racy"])
    def test_pipeline(self, with_wait):
        round_trip(with_wait)


@pytest.mark.streamsan(allow="missing-wait")
def test_allowed():
    round_trip(with_wait=False)


@pytest.mark.streamsan(allow=["use-after-free"])
def test_racy_in_another_way_than_is_allowed():
    round_trip(with_wait=False)


@pytest.fixture
def uploaded():
    pipeline = Pipeline()
    pipeline.upload()
    yield pipeline
    pipeline.download()
    pipeline.synchronize()


def test_racy_in_its_fixture(uploaded):
    pass


left_over = []


def test_leaves_an_upload():
    pipeline = Pipeline()
    pipeline.upload()
    left_over.append(pipeline)


def test_racy_with_the_one_before():
    pipeline = left_over.pop()
    pipeline.download()
    pipeline.synchronize()
