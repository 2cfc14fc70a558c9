"""Runs every program under test on the real driver and compares verdicts and findings.

    compare_programs.py STREAMSAN TABLE PROGRAMS-FOLDER WORK-FOLDER

The folder has the executable `programs`, which is all of them.

A GPU does not tell what kernels touch, so verdict and findings must be those of the column for a
simulated driver that withholds it. Findings that are only possible are not compared.

One line a row of the table; exit code 1 when one is not as expected.
"""

import collections
import json
import pathlib
import subprocess
import sys

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


def without_possible(findings):
    return collections.Counter({k: n for k, n in findings.items() if not k.endswith(" possible")})


def problem(row, streamsan, programs, work):
    program, variant, _, fail_on, verdict, findings, withheld = row
    if withheld != "=":
        verdict, findings = withheld.split(" ", 1)
    trace, report = work / f"{program}-{variant}.db", work / f"{program}-{variant}.json"
    command_line = [programs / "programs", program, variant]
    alone = subprocess.run(command_line, capture_output=True, timeout=60)
    command = [streamsan, "run", "-o", trace, "--fail-on", fail_on, "--report", f"json={report}"]
    wrapped = subprocess.run(command + ["--", *command_line], capture_output=True, timeout=60)
    said = wrapped.stderr.decode(errors="replace").strip()
    if alone.returncode != 0:
        return f"ended with {alone.returncode} by itself: {alone.stderr.decode().strip()}"
    if wrapped.stdout != alone.stdout:
        return f"another standard output: {wrapped.stdout!r}"
    got = CODES.get(wrapped.returncode)
    if got is None:
        return f"exit code {wrapped.returncode}: {said}"
    found, wanted = reported_findings(json.loads(report.read_text())), expected_findings(findings)
    if got != verdict:
        return f"verdict {got} instead of {verdict}: {said}"
    found, wanted = without_possible(found), without_possible(wanted)
    if found != wanted:
        return f"findings {dict(found)} instead of {dict(wanted)}"
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
