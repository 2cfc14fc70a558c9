"""The occurrences of a report's findings, from the trace.

A report folds the occurrences of one mistake and tells one of them; a test needs all of its own.
The trace has them (docs/schema.md), by a fingerprint without call sites, since functions are only
looked up when a run has ended. Where a report has several findings of one such fingerprint, an
occurrence belongs to the one whose call sites lie in its own stacks.
"""

import os
import sqlite3

FINDINGS = """
    SELECT finding.fingerprint,
        first.op, first_op.process, first_thread.tid, first.stack,
        second.op, second_op.process, second_thread.tid, second.stack
    FROM finding
    JOIN finding_access AS first ON first.finding = finding.id AND first.side = 1
    JOIN finding_access AS second ON second.finding = finding.id AND second.side = 2
    LEFT JOIN op AS first_op ON first_op.g = first.op
    LEFT JOIN thread AS first_thread ON first_thread.id = first_op.thread
    LEFT JOIN op AS second_op ON second_op.g = second.op
    LEFT JOIN thread AS second_thread ON second_thread.id = second_op.thread
    ORDER BY finding.id"""

LINTS = """
    SELECT lint.fingerprint, NULL, NULL, NULL, NULL, lint.op, op.process, thread.tid, lint.stack
    FROM lint
    LEFT JOIN op ON op.g = lint.op
    LEFT JOIN thread ON thread.id = op.thread
    ORDER BY lint.id"""

#: Inlined functions first, as they stand in a report.
FRAMES = """
    SELECT stack.id, image.value, frame.offset, function.value, file.value, source.line
    FROM stack
    LEFT JOIN frame ON frame.id = stack.frame
    LEFT JOIN string AS image ON image.id = frame.image
    LEFT JOIN frame_source AS source ON source.frame = frame.id
    LEFT JOIN string AS function ON function.id = source.function
    LEFT JOIN string AS file ON file.id = source.file
    ORDER BY stack.id, stack.depth, source.ordinal"""


class Call:
    """A side of an occurrence: its issue index, its process and its thread, as far as known, and
    the lines that led to it, ``(function, file, line)`` from the innermost on."""

    def __init__(self, index=None, process=None, thread=None, lines=()):
        self.index, self.process, self.thread, self.lines = index, process, thread, lines


class Trace:
    """The occurrences that the trace of a run has of its report's findings."""

    def __init__(self, path, findings):
        address = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        trace = sqlite3.connect(f"file:{address}?mode=ro", uri=True)
        try:
            #: Process ids and those of the parents, by the process.
            self.processes = {
                row[0]: (row[1], row[2])
                for row in trace.execute("SELECT id, pid, parent_pid FROM process ORDER BY id")
            }
            rows = [row for query in (FINDINGS, LINTS) for row in trace.execute(query)]
            stacks, lines = _stacks(trace)
        finally:
            trace.close()
        self._occurrences = _assign(rows, stacks, lines, findings)

    def occurrences(self, finding):
        """``(first, second)`` calls of a finding of the report, one at least.

        A lint has no first call.
        """
        told = _told(finding)
        return self._occurrences.get(finding["id"]) or [tuple(Call(index) for index in told)]


def _told(finding):
    """The indices of the occurrence that the report tells."""
    if "accesses" in finding:
        return tuple(access["op"] for access in finding["accesses"])
    return None, finding["op"]


def _stacks(trace):
    """The frames of each stack by their identities, and its lines."""
    stacks, lines = {}, {}
    for stack, image, offset, function, file, line in trace.execute(FRAMES):
        stacks.setdefault(stack, []).append(_frame(image, offset, function, file))
        lines.setdefault(stack, []).append((function, file, line))
    return stacks, lines


def _frame(image, offset, function, file):
    """A frame's identity: the place in machine code; of Python, the function and the file."""
    if image is not None:
        return image, offset
    return function, os.path.basename(file or "")


def _site(stack):
    """The program's own frames of a report's stack, as many as a fingerprint has."""
    own = (frame for frame in stack or [] if frame["origin"] == "program")
    frames = (
        _frame(frame["image"], frame["offset"], frame["function"], frame["file"]) for frame in own
    )
    return [frame for _, frame in zip(range(3), frames)]


def _sites(finding):
    if "accesses" in finding:
        return [_site(access.get("stack")) for access in finding["accesses"]]
    return [[], _site(finding.get("stack"))]


def _assign(rows, stacks, lines, findings):
    told = {_told(finding): finding for finding in findings}
    candidates = {}
    for fingerprint, first, _, _, _, second, *_ in rows:
        finding = told.get((first, second))
        if finding is not None and finding not in candidates.setdefault(fingerprint, []):
            candidates[fingerprint].append(finding)
    occurrences = {}
    for fingerprint, *sides in rows:
        calls = tuple(Call(*side[:3], lines.get(side[3], ())) for side in (sides[:4], sides[4:]))
        finding = told.get((calls[0].index, calls[1].index))
        if finding is None:
            places = [stacks.get(sides[3], []), stacks.get(sides[7], [])]
            # The first of those that fit as well.
            finding = max(
                candidates.get(fingerprint, []),
                key=lambda candidate: _fit(_sites(candidate), places),
                default=None,
            )
        if finding is not None:
            occurrences.setdefault(finding["id"], []).append(calls)
    return occurrences


def _fit(sites, places):
    """How many frames of the sites lie in the stacks, in their order."""
    fit = 0
    for site, place in zip(sites, places):
        rest = iter(place)
        fit += sum(1 for frame in site if any(frame == other for other in rest))
    return fit
