"""Runs every program under test on the real driver and compares verdicts and findings.

    compare_programs.py STREAMSAN TABLE PROGRAMS-FOLDER WORK-FOLDER

Where copies, memsets, allocations and the host decide a race, the verdict must be that of the
table, and so must the findings that are certain. Where kernels decide it, what a kernel touches is
only assumed: the racy variant must not be called anything but CLEAN or RACY, the clean variant must
be CLEAN, and the expected conflict must be listed below the threshold. A kernel that is given a
table of addresses hides its conflict altogether.

One line a row of the table; exit code 1 when one is not as expected.
"""

import collections
import json
import pathlib
import subprocess
import sys

HIDDEN = {"pointer_table"}
CODES = {0: "CLEAN", 3: "INCOMPLETE", 66: "RACY"}


def rows(table):
    lines = [line for line in table.read_text().splitlines() if not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


def expected_findings(cell):
    found = collections.Counter()
    for part in cell.split("; "):
        if part != "-":
            sort, count = part.rsplit(" ", 1)
            found[sort] += int(count)
    return found


def reported_findings(report):
    found = collections.Counter()
    for finding in report["findings"]:
        if finding["severity"] != "lint":
            sort = " ".join(finding[key] for key in ("severity", "class", "kind", "confidence"))
            found[sort] += finding["count"]
    return found


def problem(row, streamsan, programs, work):
    program, variant, decided_by, fail_on, verdict, findings = row
    trace, report = work / f"{program}-{variant}.db", work / f"{program}-{variant}.json"
    path = programs / program
    alone = subprocess.run([path, variant], capture_output=True, timeout=60)
    command = [streamsan, "run", "-o", trace, "--fail-on", fail_on, "--report", f"json={report}"]
    wrapped = subprocess.run(command + ["--", path, variant], capture_output=True, timeout=60)
    said = wrapped.stderr.decode(errors="replace").strip()
    if alone.returncode != 0:
        return f"ended with {alone.returncode} by itself: {alone.stderr.decode().strip()}"
    if wrapped.stdout != alone.stdout:
        return f"another standard output: {wrapped.stdout!r}"
    got = CODES.get(wrapped.returncode)
    if got is None:
        return f"exit code {wrapped.returncode}: {said}"
    found, wanted = reported_findings(json.loads(report.read_text())), expected_findings(findings)
    if decided_by == "copies":
        if got != verdict:
            return f"verdict {got} instead of {verdict}: {said}"
        certain = collections.Counter({k: n for k, n in found.items() if k.endswith(" certain")})
        if certain != wanted:
            return f"findings {dict(certain)} instead of {dict(wanted)}"
        return None
    if variant == "clean":
        return None if got == "CLEAN" else f"verdict {got} instead of CLEAN: {said}"
    if got not in ("CLEAN", "RACY"):
        return f"verdict {got}: {said}"
    if program not in HIDDEN:
        kinds = {sort.split()[2] for sort in found}
        missing = {sort.split()[2] for sort in wanted} - kinds
        if missing:
            return f"no {', '.join(sorted(missing))} even below the threshold: {dict(found)}"
    return None


def main():
    streamsan, table, programs, work = map(pathlib.Path, sys.argv[1:5])
    failed = 0
    for row in rows(table):
        try:
            why = problem(row, streamsan, programs, work)
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            why = f"{type(error).__name__}: {error}"
        failed += why is not None
        print(f"{'PASS' if why is None else 'FAIL'}\t{row[0]} {row[1]}\t{why or ''}", flush=True)
    return 1 if failed else 0


sys.exit(main())
