"""The pytest that the user started: it starts the one that runs the tests, and tells the races."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest
from _pytest.config import create_terminal_writer

from . import _marks, _pytest_junit, _pytest_races
from ._command import NotFound, find
from .pytest_plugin import INSIDE

TRACE = "streamsan-pytest.db"


def run(config):
    """Runs the tests under the command. Returns pytest's exit code."""
    if _marks.RUNTIME is not None:
        # The tests run, and the command around pytest tells their races.
        return None
    try:
        command = find()
    except NotFound as error:
        raise pytest.UsageError(f"--streamsan: {error}") from error
    folder = tempfile.mkdtemp(prefix="streamsan-pytest-")
    try:
        return _run_in(config, command, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_in(config, command, folder):
    marks = os.path.join(folder, "marks")
    os.mkdir(marks)
    trace = os.path.abspath(config.getoption("streamsan_trace") or TRACE)
    reports = {form: os.path.join(folder, f"report.{form}") for form in ("json", "text")}
    words = [command, "run", "--exit-as-program", "--quiet", "-o", trace]
    for form, path in reports.items():
        words += ["--report", f"{form}={path}"]
    fail_on = config.getoption("streamsan_fail_on")
    if fail_on:
        words += ["--fail-on", fail_on]
    if config.getoption("streamsan_sim"):
        words.append("--sim")
    words += config.getini("streamsan_options")
    words += ["--", sys.executable, *_same_arguments(config)]
    code = _call(words, {_marks.DIRECTORY: marks, INSIDE: "1"})
    if not os.path.exists(reports["json"]):
        # The command has said why. Tests whose races nobody judged have not passed.
        return code if code not in (0, 5) else pytest.ExitCode.INTERNAL_ERROR
    outcome = _pytest_races.judge(
        reports["json"],
        reports["text"],
        trace,
        _marks.read(marks),
        config.getoption("streamsan_allow_incomplete"),
    )
    # No session began in this process, so pytest has no reporter here whose writer could be taken.
    writer = create_terminal_writer(config, sys.stdout)
    junit = getattr(config.option, "xmlpath", None)
    if junit:
        prefix = getattr(config.option, "junitprefix", None)
        _pytest_junit.add(junit, prefix, outcome.failures())
    outcome.write(writer, _shown(trace, str(config.invocation_params.dir)))
    if outcome.fails and code in (0, 5):
        return pytest.ExitCode.TESTS_FAILED
    return code


def _same_arguments(config):
    """Python's own arguments, so that pytest finds the same modules and options again."""
    given = [str(word) for word in config.invocation_params.args]
    as_started = getattr(sys, "orig_argv", [])[1:]
    if given == sys.argv[1:] and as_started[len(as_started) - len(given) :] == given:
        return as_started
    return ["-m", "pytest", *given]


def _call(words, variables):
    """Runs a command and returns its exit code. Ctrl-C is for the tests: pytest there ends by
    itself and shows what it has."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.call(words, env={**os.environ, **variables})
    finally:
        signal.signal(signal.SIGINT, before)
    return code if code >= 0 else 128 - code


def _shown(path, folder):
    """A path below the folder is shown relative to it."""
    relative = os.path.relpath(path, folder)
    return path if relative.startswith(os.pardir) else relative
