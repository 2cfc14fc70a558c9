"""``pytest --streamsan``: the tests run under the command, and a race fails the test that made it.

Two processes take part. The first one, which the user started, does nothing but start pytest once
more under ``streamsan run`` and tell what was found when that has ended (``_pytest_session``). The
second one runs the tests as always and marks the begin and end of each (``_marks``); where
pytest-xdist gives tests to workers, these are processes of the same run, and one trace holds them
all.

Without ``--streamsan`` the plugin adds its options and its marker, and does nothing.
"""

import os

import pytest

from . import _marks

#: Set for the pytest that runs the tests.
INSIDE = "STREAMSAN_PYTEST"

LEVELS = ("certain", "likely", "possible", "latent", "lint")


def pytest_addoption(parser):
    group = parser.getgroup("streamsan", "races between CUDA streams (streamsan)")
    group.addoption(
        "--streamsan",
        action="store_true",
        help="run the tests under streamsan, and fail those that race",
    )
    group.addoption(
        "--streamsan-fail-on",
        metavar="LEVEL",
        choices=LEVELS,
        help="the weakest finding that fails a test: certain, likely (default), possible, latent "
        "or lint",
    )
    group.addoption(
        "--streamsan-allow-incomplete",
        action="store_true",
        help="do not fail the session because something was not seen",
    )
    group.addoption(
        "--streamsan-sim",
        action="store_true",
        help="run on streamsan's simulated driver, without a GPU",
    )
    group.addoption(
        "--streamsan-trace",
        metavar="FILE.db",
        help="where the trace goes (default: streamsan-pytest.db)",
    )
    parser.addini(
        "streamsan_options",
        type="args",
        default=[],
        help="further options of `streamsan run`, such as --suppressions=FILE",
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "streamsan(allow): races that do not fail this test: classes or ids of findings, or True "
        "for all of them (with pytest --streamsan)",
    )
    if _marks.directory() is not None:
        config.pluginmanager.register(_Marking(), "streamsan-marking")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.getoption("streamsan") or INSIDE in os.environ or _only_shows(config):
        return None
    from . import _pytest_session

    return _pytest_session.run(config)


def pytest_report_header(config):
    if config.getoption("streamsan") and _marks.RUNTIME is not None:
        return "streamsan: the tests are recorded"
    return None


def _only_shows(config):
    """Whether pytest runs no test."""
    names = ("help", "version", "markers", "showfixtures", "show_fixtures_per_test", "collectonly")
    names += ("setuponly", "setupplan", "cacheshow")
    return any(getattr(config.option, name, None) for name in names)


class _Marking:
    """Marks each test's phases, in the process that runs it."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_setup(self, item):
        _begin(item, "setup")
        yield
        _end(item, "setup")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        _begin(item, "call")
        yield
        _end(item, "call")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_teardown(self, item):
        _begin(item, "teardown")
        yield
        _end(item, "teardown")


def _begin(item, phase):
    mark = {"test": item.nodeid, "phase": phase, "begin": _marks.index()}
    if phase == "setup":
        mark["allow"] = _allowed(item)
    _marks.write(mark)


def _end(item, phase):
    _marks.write({"test": item.nodeid, "phase": phase, "end": _marks.index()})


def _allowed(item):
    """Classes and ids of the findings that the test's markers allow; ``["*"]`` for all."""
    allowed = []
    for marker in item.iter_markers("streamsan"):
        value = marker.kwargs.get("allow", marker.args[0] if marker.args else None)
        if value is True:
            return ["*"]
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, (list, tuple, set, frozenset)) or not value:
            raise pytest.UsageError(
                f"{item.nodeid}: the marker streamsan takes allow=CLASS, allow=[CLASS, ...] or "
                "allow=True"
            )
        allowed.extend(str(word) for word in value)
    return allowed
