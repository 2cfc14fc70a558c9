"""What kernels touched on a GPU against what streamsan concluded.

    compare.py OUT NAME=TRACE,LOG [NAME=TRACE,LOG ...]

TRACE is the SQLite file of `streamsan run` (docs/schema.md), LOG what the measuring tool wrote in the
same process (tool/tool.cpp). TRACE may also end in .json: what replay.rs says of a log. The launches of both are paired by their order. Of each measured launch,
every byte read must lie in a reading access of the trace, every byte written in a writing one; an
atomic does both. Bytes that lie in no allocation of the trace are counted apart: nothing can be
reported about them. So are kernels of which the trace itself says that they follow pointers in memory
or may touch anything: what they touch beyond the conclusion is declared, not missed in silence.

Prints PASS or FAIL for each program: FAIL where a kernel touched more than was concluded, where
launches could not be paired, or where the mode of more than 2% of the pointer words is unknown. OUT
gets table.md (a row a program), kernels.tsv (a line a kernel), violations.txt (the first of each
kernel) and result.json.
"""

import argparse
import collections
import json
import pathlib
import sqlite3
import sys

import numpy as np

READ, WRITE, READ_WRITE, ATOMIC, MAY_WRITE = range(5)
ALLOCATE, FREE = 5, 6
MODULE_GLOBAL = 6
READS = {READ, READ_WRITE, ATOMIC, MAY_WRITE}
WRITES = {WRITE, READ_WRITE, ATOMIC, MAY_WRITE}
ASSUMED, ANCHORED, INFERRED, EXACT = range(4)
LAUNCH = 19
WANTED_SHARE = 0.98
# What coverage rows name kernels that touch more than is concluded.
DECLARING = (
    "incomplete: launches with unknown parameters",
    "incomplete: pointers in memory followed",
    "launches that may touch anything",
)
EMPTY = np.zeros((0, 2), dtype=np.int64)


def merged(ranges):
    """Ranges (n by 2: start and end) in ascending order, those that touch each other joined."""
    ranges = ranges[ranges[:, 0] < ranges[:, 1]]
    if len(ranges) == 0:
        return EMPTY
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    ends = np.maximum.accumulate(ranges[:, 1])
    begins = np.concatenate([[True], ranges[1:, 0] > ends[:-1]])
    last = np.append(np.flatnonzero(begins)[1:] - 1, len(ranges) - 1)
    return np.stack([ranges[begins, 0], ends[last]], axis=1)


def union(*parts):
    return merged(np.concatenate([EMPTY, *parts]))


def expanded(entry):
    """The ranges of a list of [start, length, pitch, count]."""
    parts = [EMPTY]
    for start, length, pitch, count in entry:
        starts = start + pitch * np.arange(count, dtype=np.int64)
        parts.append(np.stack([starts, starts + length], axis=1))
    return merged(np.concatenate(parts))


def without(ranges, cover):
    """The bytes of `ranges` that `cover` lacks; both merged."""
    left = []
    if len(cover) == 0 or len(ranges) == 0:
        return ranges
    at = np.searchsorted(cover[:, 0], ranges[:, 0], side="right") - 1
    inside = (at >= 0) & (cover[np.maximum(at, 0), 1] >= ranges[:, 1])
    for start, end in ranges[~inside]:
        first = np.searchsorted(cover[:, 1], start, side="right")
        for low, high in cover[first:]:
            if low >= end:
                break
            if low > start:
                left.append((start, low))
            start = max(start, high)
        if start < end:
            left.append((start, end))
    return merged(np.array(left, dtype=np.int64)) if left else EMPTY


def size(ranges):
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def within(ranges, start, end):
    """The part of merged ranges that lies in [start, end)."""
    return merged(np.clip(ranges, start, end)) if len(ranges) else ranges


class Trace:
    """The launches of one process of a trace, with their accesses."""

    def __init__(self, path, pid):
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        row = self.db.execute("SELECT id FROM process WHERE pid = ?", (pid,)).fetchone()
        if row is None:
            raise ValueError(f"process {pid} is not in {path}")
        self.process = row[0]
        self.patterns = {
            row[0]: row[1:]
            for row in self.db.execute(
                "SELECT id, width, pitch, rows, slice_pitch, slices FROM access_pattern"
            )
        }
        births, deaths = {}, {}
        for g, allocation, mode in self.db.execute(
            "SELECT id >> 24, allocation, mode FROM access WHERE mode IN (?, ?)", (ALLOCATE, FREE)
        ):
            (births if mode == ALLOCATE else deaths)[allocation] = g
        # When a module's variables come and go is not recorded; their memory may serve others later.
        rows = self.db.execute(
            "SELECT id, start, start + length FROM allocation"
            " WHERE process = ? AND length > 0 AND kind != ?",
            (self.process, MODULE_GLOBAL),
        ).fetchall()
        self.bounds = np.array(
            [(births.get(row[0], -1), deaths.get(row[0], 1 << 62)) for row in rows], dtype=np.int64
        ).reshape(-1, 2)
        self.ranges = np.array([row[1:] for row in rows], dtype=np.int64).reshape(-1, 2)

    def launches(self):
        """(g, kernel id, kernel name) of the successful launches in order."""
        return self.db.execute(
            "SELECT op.g, op.kernel, string.value FROM op"
            " LEFT JOIN kernel ON kernel.id = op.kernel LEFT JOIN string ON string.id = kernel.name"
            " WHERE op.action = ? AND op.process = ? AND op.result = 0 ORDER BY op.g",
            (LAUNCH, self.process),
        ).fetchall()

    def allocations(self, g):
        """The memory that is allocated when operation `g` is issued."""
        return merged(self.ranges[(self.bounds[:, 0] < g) & (self.bounds[:, 1] > g)])

    def accesses(self, g):
        """(ranges, mode, basis) of each access of an operation."""
        found = []
        for start, length, mode, basis, pattern in self.db.execute(
            "SELECT start, length, mode, basis, pattern FROM access"
            " WHERE id >= ? << 24 AND id < (? + 1) << 24",
            (g, g),
        ):
            ranges = rows_of(start, length, None if pattern is None else self.patterns[pattern])
            found.append((ranges, mode, basis))
        return found

    def declared(self):
        """Names of the kernels that the trace says to touch more than it lists."""
        words = ", ".join("?" * len(DECLARING))
        return {
            row[0]
            for row in self.db.execute(
                "SELECT string.value FROM coverage JOIN string ON string.id = coverage.name"
                " JOIN enumeration ON enumeration.name = 'coverage'"
                f" AND enumeration.code = coverage.kind WHERE enumeration.word IN ({words})",
                DECLARING,
            )
        }

    def words(self):
        """By kernel: its source of knowledge, why not more is known, the modes of its words."""
        tables = {row[0] for row in self.db.execute("SELECT name FROM sqlite_master")}
        found = {}
        if "kernel_code" not in tables:
            return found
        sources = dict(
            self.db.execute("SELECT code, word FROM enumeration WHERE name = 'code source'")
        )
        for kernel, source, reason in self.db.execute(
            "SELECT kernel, source, string.value FROM kernel_code"
            " LEFT JOIN string ON string.id = reason"
        ):
            found[kernel] = (sources.get(source, str(source)), reason, [])
        for kernel, mode in self.db.execute("SELECT kernel, mode FROM kernel_word"):
            if kernel in found:
                found[kernel][2].append(mode)
        return found


def rows_of(start, length, pattern):
    """The ranges of an access: a row of `access` and, if any, of `access_pattern`."""
    if pattern is None:
        return merged(np.array([[start, start + length]], dtype=np.int64))
    width, pitch, rows, slice_pitch, slices = pattern
    starts = (
        start
        + slice_pitch * np.arange(slices, dtype=np.int64)[:, None]
        + pitch * np.arange(rows, dtype=np.int64)
    ).ravel()
    return merged(np.stack([starts, starts + width], axis=1))


class Replayed:
    """What the code of the kernels says of measured launches: the same questions as to a trace."""

    def __init__(self, path, log):
        lines = [json.loads(line) for line in open(path, encoding="utf-8")]
        self.lines = {line["ordinal"]: line for line in lines}
        self.log = {line["ordinal"]: line for line in log if line["ordinal"] in self.lines}

    def launches(self):
        return [(at, (line["code"], line["name"]), line["name"]) for at, line in self.lines.items()]

    def allocations(self, ordinal):
        return expanded(self.log[ordinal]["memory"])

    def accesses(self, ordinal):
        return [
            (rows_of(start, length, pattern), mode, basis)
            for start, length, mode, basis, pattern in self.lines[ordinal]["accesses"]
        ]

    def declared(self):
        return {line["name"] for line in self.lines.values() if line["declared"]}

    def words(self):
        return {
            (line["code"], line["name"]): (line["source"], line["reason"], line["words"])
            for line in self.lines.values()
        }


class Kernel:
    """What was counted for one kernel name."""

    def __init__(self, name):
        self.name = name
        self.launches = self.measured = self.resolved = self.violations = 0
        self.accesses = self.inferred = self.comparable = self.exact = self.needless = 0
        self.words = self.known = 0
        self.strays = 0
        self.touched = self.concluded = 0
        self.source, self.reason = "no code", None
        self.is_declared = False
        self.first_violation = None

    @property
    def standing(self):
        """What the measurement says of the conclusions."""
        if not self.measured:
            return "not measured"
        if self.violations:
            return "declared" if self.is_declared else "unsound"
        # Covered is what could be seen; is that all?
        return "sound" if self.resolved == self.measured else "seen in part"

    def add(self, other):
        """Takes in what another program showed of the same kernel."""
        for field in (
            "launches measured resolved violations accesses inferred comparable exact needless strays"
            " touched concluded"
        ).split():
            setattr(self, field, getattr(self, field) + getattr(other, field))
        if other.words > self.words:
            self.words, self.known = other.words, other.known
        # Missed in one program without a word is missed.
        if other.violations:
            self.is_declared = other.is_declared and (self.is_declared or self.violations == 0)


class Launch:
    """The measured bytes of one launch."""

    def __init__(self, entry):
        self.read, self.write, self.atomic = (
            expanded(entry[kind]) for kind in ("read", "write", "atomic")
        )
        self.unseen = expanded(entry.get("unseen", []))
        self.is_lost = entry["lost"] > 0
        self.unknown_loads = entry["unknown_tensor_loads"]

    def is_whole(self, mode):
        """Whether all bytes that a mode is about could be seen. What changed without a store that
        the tool sees shows only some of the bytes written."""
        reads = mode not in READS or self.unknown_loads == 0
        writes = mode not in WRITES or len(self.unseen) == 0
        return reads and writes and not self.is_lost

    def of_mode(self, mode):
        writes = union(self.write, self.unseen, self.atomic)
        reads = union(self.read, self.atomic)
        return {READ: reads, WRITE: writes, ATOMIC: self.atomic}.get(mode, union(reads, writes))


def check_launch(kernel, launch, accesses, allocations, where):
    """Counts one measured launch; returns the number of bytes outside of the conclusion."""
    cover = {
        "read": union(*(ranges for ranges, mode, _ in accesses if mode in READS)),
        "written": union(*(ranges for ranges, mode, _ in accesses if mode in WRITES)),
    }
    touched = {
        "read": union(launch.read, launch.atomic),
        "written": union(launch.write, launch.atomic, launch.unseen),
    }
    missed = 0
    strays = EMPTY
    for kind, ranges in touched.items():
        known = without(ranges, without(ranges, allocations))
        strays = union(strays, without(ranges, allocations))
        outside = without(known, cover[kind])
        if len(outside):
            missed += size(outside)
            if kernel.first_violation is None:
                start, end = (int(x) for x in outside[0])
                rows = "; ".join(
                    f"{int(r[0, 0]):#x}..{int(r[-1, 1]):#x} mode {m} basis {b}"
                    for r, m, b in accesses
                )
                kernel.first_violation = (
                    f"{where}: {size(outside)} of {size(ranges)} bytes {kind} in {len(outside)}"
                    f" ranges are not concluded, first {start:#x}..{end:#x};"
                    f" concluded: {rows or 'nothing'}"
                )
    kernel.strays += size(strays)
    kernel.measured += 1
    kernel.resolved += not launch.is_lost and launch.unknown_loads == 0
    kernel.violations += missed > 0
    for ranges, mode, basis in accesses:
        kernel.accesses += 1
        kernel.inferred += basis >= INFERRED
        if launch.is_whole(mode):
            inside = within(launch.of_mode(mode), ranges[0, 0], ranges[-1, 1])
            kernel.comparable += 1
            kernel.exact += len(inside) > 0 and bool(
                inside[0, 0] == ranges[0, 0] and inside[-1, 1] == ranges[-1, 1]
            )
            written = within(launch.of_mode(WRITE), ranges[0, 0], ranges[-1, 1])
            kernel.needless += mode in WRITES and len(written) == 0
            kernel.touched += size(inside)
            kernel.concluded += size(ranges)
    return missed


def read_log(path):
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.endswith("\n")]
    pid = next((line["pid"] for line in lines if "pid" in line), None)
    problems = [line["problem"] for line in lines if "problem" in line]
    return pid, problems, [line for line in lines if "ordinal" in line]


def pair(trace, log):
    """Pairs launches of the trace with lines of the log; and why not all, or `None`.

    The order of both is the same where one thread launches at a time; else launches of one name are
    paired by their order.
    """
    if [row[2] for row in trace] == [line["name"] for line in log]:
        return list(zip(trace, log)), None
    by_name = collections.defaultdict(list)
    for row in trace:
        by_name[row[2]].append(row)
    counts = collections.Counter(line["name"] for line in log)
    wrong = [name for name in {*counts, *by_name} if counts[name] != len(by_name[name])]
    taken = collections.Counter()
    pairs = []
    for line in log:
        name = line["name"]
        if name not in wrong:
            pairs.append((by_name[name][taken[name]], line))
            taken[name] += 1
    why = None
    if wrong:
        name = wrong[0]
        why = (
            f"{len(wrong)} kernels have other numbers of launches, such as {name}:"
            f" {len(by_name[name])} in the trace, {counts[name]} measured"
        )
    return pairs, why


def check_program(trace_path, log_path):
    """Kernels by name, problems of the measurement, and why launches are not paired, or `None`."""
    pid, problems, log = read_log(log_path)
    if str(trace_path).endswith(".json"):
        trace = Replayed(trace_path, log)
        log = [line for line in log if line["ordinal"] in trace.lines]
    else:
        trace = Trace(trace_path, pid)
    pairs, why = pair(trace.launches(), log)
    if not log:
        why = "nothing was measured"
    words, declared = trace.words(), trace.declared()
    kernels, ids = {}, collections.defaultdict(set)
    most_accesses = collections.Counter()
    for (g, kernel_id, name), line in pairs:
        kernel = kernels.setdefault(name, Kernel(name))
        kernel.launches += 1
        ids[name].add(kernel_id)
        if "read" not in line:
            continue
        accesses = trace.accesses(g)
        most_accesses[kernel_id] = max(most_accesses[kernel_id], len(accesses))
        where = f"launch {line['ordinal']}" + (f" (operation {g})" if g != line["ordinal"] else "")
        check_launch(kernel, Launch(line), accesses, trace.allocations(g), where)
    for name, kernel in kernels.items():
        kernel.is_declared = name in declared
        for kernel_id in ids[name]:
            if kernel_id in words:
                kernel.source, kernel.reason, modes = words[kernel_id]
                kernel.words += len(modes)
                kernel.known += sum(mode != MAY_WRITE for mode in modes)
            if not is_read(kernel.source):
                # Nobody read the code: each word that looks like a pointer is unknown.
                kernel.words += most_accesses[kernel_id]
    return kernels, problems, why


def percent(part, whole):
    return f"{100 * part / whole:.1f}%" if whole else "-"


def is_read(source):
    return source in ("PTX", "machine code")


STANDINGS = ("sound", "declared", "seen in part", "unsound")


def summary(kernels):
    """The numbers of a program."""

    def total(field):
        return sum(getattr(kernel, field) for kernel in kernels)

    found = {
        "kernels": len(kernels),
        "launches": total("launches"),
        "measured_launches": total("measured"),
        "measured_kernels": sum(kernel.measured > 0 for kernel in kernels),
        "read_kernels": sum(is_read(kernel.source) for kernel in kernels),
    }
    for standing in STANDINGS:
        found[standing] = sum(kernel.standing == standing for kernel in kernels)
    for field in (
        "words known accesses inferred comparable exact needless touched concluded strays"
    ).split():
        found[field] = int(total(field))
    return found


HEAD = (
    "| program | kernels | code read | launches | pointer words | mode known | kernels measured | sound"
    " | declared | seen in part | unsound | range known | range exact | needless write |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
)


def table_row(name, s):
    cells = [
        name, s["kernels"], s["read_kernels"], s["launches"], s["words"],
        percent(s["known"], s["words"]), s["measured_kernels"],
        *(s[standing] for standing in STANDINGS),
        percent(s["inferred"], s["accesses"]), percent(s["exact"], s["comparable"]),
        percent(s["needless"], s["comparable"]),
    ]  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


DETAILS = (
    "program\tkernel\tcode\tstanding\tlaunches\tmeasured\twords\tknown\taccesses\tinferred"
    "\tcomparable\texact\tneedless\tbytes touched\tbytes concluded\tstray bytes\tlaunches beyond"
    "\treason\n"
)


def details_row(program, kernel):
    cells = (
        program, kernel.name, kernel.source, kernel.standing, kernel.launches, kernel.measured,
        kernel.words, kernel.known, kernel.accesses, kernel.inferred, kernel.comparable, kernel.exact,
        kernel.needless, kernel.touched, kernel.concluded, kernel.strays, kernel.violations,
        kernel.reason or "",
    )  # fmt: skip
    return "\t".join(str(cell) for cell in cells) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("programs", nargs="+", metavar="NAME=TRACE,LOG")
    arguments = parser.parse_args()
    failed = False
    table, details, violations, result = HEAD, DETAILS, "", {}
    everything = {}
    for program in arguments.programs:
        name, _, files = program.partition("=")
        trace, _, log = files.rpartition(",")
        try:
            kernels, problems, why = check_program(trace, log)
        except (OSError, ValueError, KeyError, sqlite3.Error) as error:
            print(f"FAIL\t{name}\t{type(error).__name__}: {error}")
            failed = True
            continue
        for problem in problems:
            print(f"NOTE\t{name}\tmeasuring: {problem}")
        s = result[name] = summary(kernels.values())
        table += table_row(name, s)
        for kernel in sorted(kernels.values(), key=lambda kernel: kernel.name):
            details += details_row(name, kernel)
            if kernel.first_violation:
                violations += f"{name}\t{kernel.name}\t{kernel.standing}\t{kernel.first_violation}\n"
            if kernel.name in everything:
                everything[kernel.name].add(kernel)
            else:
                everything[kernel.name] = kernel
        reasons = []
        if why:
            reasons.append(f"launches are not paired: {why}")
        if s["unsound"]:
            reasons.append(f"{s['unsound']} kernels touched more than concluded")
        if s["known"] < WANTED_SHARE * s["words"]:
            reasons.append(f"mode known of {s['known']} of {s['words']} pointer words")
        if not s["measured_kernels"]:
            reasons.append("no kernel was measured")
        failed |= bool(reasons)
        counts = ", ".join(f"{s[standing]} {standing}" for standing in STANDINGS)
        print(f"{'FAIL' if reasons else 'PASS'}\t{name}\t{'; '.join(reasons) or counts}")
    result["all"] = summary(everything.values())
    table += table_row("all", result["all"])
    arguments.out.mkdir(parents=True, exist_ok=True)
    for file, text in (
        ("table.md", table),
        ("kernels.tsv", details),
        ("violations.txt", violations),
        ("result.json", json.dumps(result, indent=1) + "\n"),
    ):
        (arguments.out / file).write_text(text, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
