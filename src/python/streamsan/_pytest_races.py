"""Which test made which race, and what pytest tells of it.

The command's report says what the findings are and which of them count; the trace has the
occurrences of each (``_trace``); the marks say which calls belong to which test (``_marks``). A
race belongs to the test that issued its later access, since the earlier one was in order until
then. Where the earlier access is another test's, the report says so.
"""

import bisect
import json
import re

from ._trace import Trace

#: Where no test ran: modules that pytest imports, fixtures of a session at its end.
OUTSIDE = "outside of tests"


def judge(report, text, trace, marks, allow_incomplete):
    """The outcome, from the files of the report and the trace."""
    with open(report, encoding="utf-8") as file:
        report = json.load(file)
    with open(text, encoding="utf-8") as file:
        words = file.read()
    findings = [one for one in report["findings"] + report["lints"] if one["fails"]]
    timeline = Timeline(marks, Trace(trace, findings))
    return Outcome(report, _blocks(words), timeline, allow_incomplete)


class Outcome:
    """The findings by the tests that made them."""

    def __init__(self, report, blocks, timeline, allow_incomplete):
        self.verdict = report["verdict"]
        self.reasons = report["reasons"]
        self._blocks = blocks
        #: (where, whether it fails there, finding, occurrences there), in the order of the run.
        self.entries = []
        for finding in report["findings"] + report["lints"]:
            if finding["fails"]:
                self._place(finding, timeline)
        self.incomplete_fails = self.verdict == "INCOMPLETE" and not allow_incomplete
        self.fails = self.incomplete_fails or any(entry[1] for entry in self.entries)

    def _place(self, finding, timeline):
        places = {}
        for occurrence in timeline.occurrences(finding):
            places.setdefault(occurrence.second.test, []).append(occurrence)
        for test, occurrences in places.items():
            allowed = timeline.allowed(test)
            excused = bool(allowed & {"*", finding["class"], finding["id"]})
            self.entries.append((test, not excused, finding, occurrences))

    def write(self, writer, trace):
        """Tells it, after pytest's own summary."""
        failing = [entry for entry in self.entries if entry[1]]
        excused = [entry for entry in self.entries if not entry[1]]
        if failing:
            writer.line("")
            writer.sep("=", "streamsan: RACES", red=True, bold=True)
            for test in dict.fromkeys(entry[0] for entry in failing):
                writer.sep("_", _printable(test or OUTSIDE), red=True, bold=True)
                for _, _, finding, occurrences in (e for e in failing if e[0] == test):
                    self._write_finding(writer, finding, occurrences)
        if failing or excused or self.verdict == "INCOMPLETE":
            writer.line("")
            writer.sep("=", "streamsan: summary")
        for test, _, finding, occurrences in failing:
            line = _printable(f"RACY {test or OUTSIDE} - {_line(finding, occurrences)}")
            writer.line(line, red=True)
        for test, _, finding, occurrences in excused:
            line = _printable(f"allowed {test or OUTSIDE} - {_line(finding, occurrences)}")
            writer.line(line, yellow=True)
        if self.verdict == "INCOMPLETE":
            for reason in self.reasons:
                writer.line(f"INCOMPLETE {reason['text']}", red=self.incomplete_fails, yellow=True)
        said = _count(len({entry[0] for entry in failing}))
        if self.verdict == "NO CUDA":
            said = "no driver call was seen, so nothing was checked"
        writer.line(f"streamsan: {said}, trace: {trace}", red=self.fails, green=not self.fails)

    def failures(self):
        """Each failure, for ``_pytest_junit``."""
        for test, fails, finding, occurrences in self.entries:
            if fails:
                text = "\n".join(self._told(finding, occurrences))
                yield test, OUTSIDE, f"streamsan: {_line(finding, occurrences)}", text
        if self.incomplete_fails:
            reasons = [reason["text"] for reason in self.reasons]
            yield None, "not everything was seen", "streamsan: INCOMPLETE", "\n".join(reasons)

    def _write_finding(self, writer, finding, occurrences):
        for line in self._told(finding, occurrences):
            writer.line(line)
        writer.line("")

    def _told(self, finding, occurrences):
        """The report about a finding, and where its first occurrence here was issued."""
        block = self._blocks.get(finding["id"], [_line(finding, occurrences)])
        yield from block
        first = occurrences[0]
        for side, place in ((1, first.first), (2, first.second)):
            said = place.words(first.second.test if side == 1 else None, "\n".join(block))
            if said:
                yield f"  ({side}) was issued {said}"


def _count(racy):
    if racy == 0:
        return "no test races"
    return "1 test races" if racy == 1 else f"{racy} tests race"


def _line(finding, occurrences):
    seen = "once" if len(occurrences) == 1 else f"{len(occurrences)} times"
    kind = finding.get("kind") or "lint"
    return f"{kind} [{finding['class']}] id {finding['id']}, seen {seen}"


def _printable(text):
    """Names of tests and regions are the program's: nothing stays that a terminal obeys."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Place:
    """Where in the tests a call was issued."""

    def __init__(self, test=None, phase=None, regions=(), line=None):
        self.test, self.phase, self.regions, self.line = test, phase, regions, line

    def words(self, other_than, report=""):
        """Says what the report does not, which ends at the frames that both sides share."""
        parts = []
        if other_than is not None and self.test != other_than:
            parts.append(f"in {self.test}" if self.test else OUTSIDE)
        if self.test and self.phase != "call":
            parts.append(f"in the {self.phase} of the test")
        if self.line and f"{self.line}\n" not in report:
            parts.append(f"at {self.line}")
        parts += [f'in region "{region}"' for region in self.regions]
        return _printable(", ".join(parts))


class Occurrence:
    """One pair of calls."""

    def __init__(self, first, second):
        self.first, self.second = first, second


class Timeline:
    """The tests and regions of each process, by the issue indices of their calls."""

    def __init__(self, marks, trace):
        self._trace = trace
        self._allowed = {}
        self._phases = {}
        self._regions = {}
        open_phases = {}
        for mark in marks:
            pid = mark["pid"]
            if "region" in mark:
                self._regions.setdefault((pid, mark["thread"]), []).append(
                    (mark["begin"], mark["end"], mark["region"])
                )
            elif "begin" in mark:
                # Where the process ended inside, the phase has no end.
                phase = [mark["begin"], float("inf"), mark["test"], mark["phase"]]
                self._phases.setdefault(pid, []).append(phase)
                open_phases[pid] = phase
                if "allow" in mark:
                    self._allowed.setdefault(mark["test"], set()).update(mark["allow"])
            elif pid in open_phases:
                open_phases.pop(pid)[1] = mark["end"]
        # A test follows the one before it, so the begins of a process ascend.
        self._begins = {pid: [phase[0] for phase in phases] for pid, phases in self._phases.items()}

    def allowed(self, test):
        return self._allowed.get(test, set())

    def occurrences(self, finding):
        """Those of a finding of the report; at least one."""
        for first, second in self._trace.occurrences(finding):
            yield Occurrence(self._place(first), self._place(second))

    def _place(self, call):
        if call.index is None:
            return Place()
        pid = self._marked(call.process)
        phases = self._phases.get(pid, [])
        at = bisect.bisect_right(self._begins.get(pid, []), call.index) - 1
        test = phase = None
        if at >= 0 and call.index < phases[at][1]:
            test, phase = phases[at][2:]
        # A child process has no tests of its own, but may have regions.
        own_pid = self._trace.processes.get(call.process, (pid, None))[0]
        regions = self._regions.get((own_pid, call.thread), [])
        # A region is written at its end, so the outermost comes last.
        inside = [name for begin, end, name in reversed(regions) if begin <= call.index < end]
        return Place(test, phase, inside, _line_of(test, call.lines))

    def _marked(self, process):
        """The process that marked tests, for one that a test has started; the only one that did,
        where the process is not known."""
        if process is None:
            return next(iter(self._phases)) if len(self._phases) == 1 else None
        seen = set()
        by_pid = {pid: parent for pid, parent in self._trace.processes.values()}
        pid = self._trace.processes.get(process, (None, None))[0]
        while pid is not None and pid not in self._phases and pid not in seen:
            seen.add(pid)
            pid = by_pid.get(pid)
        return pid


def _line_of(test, lines):
    """The innermost of the lines in the file of a test."""
    file = (test or "").split("::")[0]
    for function, path, line in lines:
        if file and line and f"/{path}".endswith(f"/{file}"):
            return f"{file}:{line} in {function}"
    return None


#: A finding's headline; its number and id stand behind it, or below where they do not fit.
_HEADLINE = re.compile(r"\w+\[[\w-]+\]: ")
_NUMBER = re.compile(r"(?:^|  )  ?\w+ \d+ of \d+, seen .*, id ([0-9a-z]{8})$")


def _blocks(text):
    """The paragraphs of the text form, by the ids of their findings."""
    blocks, block = {}, None
    lines = text.splitlines()
    for line, below in zip(lines, [*lines[1:], ""]):
        if _HEADLINE.match(line):
            number = _NUMBER.search(line) or _NUMBER.search(below)
            block = blocks.setdefault(number.group(1), []) if number else None
        elif not line.strip():
            block = None
        if block is not None:
            block.append(line)
    return blocks
