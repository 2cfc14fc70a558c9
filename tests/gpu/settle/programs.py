"""Settles programs on a real GPU, and tells what each of the two runs gave and cost.

    programs.py STREAMSAN OUT [--samples FOLDER] [--triton FOLDER] [--only NAME,...] [--jobs N] [--twice]

    STREAMSAN   the command, built elsewhere (cargo build --release --bin streamsan)
    OUT         where results go: programs.tsv, and report and output of each program
    --samples   a checkout of NVIDIA's CUDA samples; without it the rows of samples are left out
    --triton    a checkout of Triton, likewise
    --jobs      programs at a time (default 1: times are meant to be compared)
    --twice     settles every program twice, without randomised addresses, and compares the two
                reports apart from times and process ids

The rows are those of programs.tsv beside this file. Nothing is fetched: nvcc, ptxas, the Python
packages and NVIDIA's measuring library (STREAMSAN_SANITIZER) must be there.

Each program runs alone, then under `streamsan run`, then twice in `streamsan run --settle`. A row is
PASS when the verdict of settling is the one that the table wants. Exit code 1 when a row is FAIL.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import others  # noqa: E402

HEADS = ["", "program", "run", "settled", "findings", "alone s", "run s", "second s", "note"]


def wrapped(streamsan, options, name, command, folder, cache, fixed=False):
    """A run under streamsan: its code, its report, its output, and the seconds of each run."""
    times, report = folder / f"{name}.times", folder / f"{name}.json"
    for old in (times, report):
        old.unlink(missing_ok=True)
    told = 'start=$(date +%s.%N); "$@"; code=$?; echo "$start $(date +%s.%N)" >>"$0"; exit $code'
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache))
    before = ["setarch", "-R"] if fixed else []
    code, output, _ = others.run(
        [*before, streamsan, "run", *options, "-o", folder / f"{name}.db", "--report", f"json={report}", "--",
         "sh", "-c", told, str(times), *command], folder, environment)
    try:
        lines = [line.split() for line in times.read_text().splitlines()]
        seconds = [float(end) - float(start) for start, end in lines]
        said = json.loads(report.read_text())
    except (OSError, ValueError):
        seconds, said = [], {"findings": []}
    return code, said, output, seconds


def lasting(value):
    """A report without what differs from run to run: times, process ids and paths."""
    changing = ("time", "pid", "path", "file", "duration", "seconds")
    if isinstance(value, dict):
        return {key: lasting(inner) for key, inner in value.items()
                if not any(word in key for word in changing)}
    return [lasting(inner) for inner in value] if isinstance(value, list) else value


def loop_time(output):
    """What a program says of its own loop, in milliseconds a step; the last line counts."""
    lines = [line.split() for line in output.splitlines() if line.startswith("loop: ")]
    return [float(words[1]) for words in lines]


def one(row, streamsan, folders, work, out, twice):
    """The cells of a row's result, the first of them PASS, FAIL or SKIP."""
    try:
        made = others.built(row, folders, work)
    except subprocess.CalledProcessError as error:
        (out / f"{row.name}.txt").write_bytes(error.stderr or b"")
        return ["FAIL", row.name, "not built", "", "", "", "", "", ""]
    if made is None:
        return ["SKIP", row.name, "no sources", "", "", "", "", "", ""]
    command, folder = made
    folder = work / f"{row.name}-runs" if folder == work else folder
    folder.mkdir(exist_ok=True)
    alone, alone_output, seconds = others.run(command, folder)
    if alone != 0:
        (out / f"{row.name}.txt").write_text(alone_output)
        return ["FAIL", row.name, f"ends with {alone} by itself", "", "", "", "", "", ""]
    cache = pathlib.Path(tempfile.mkdtemp(dir=work))
    first, _, _, plain = wrapped(streamsan, [], row.name, command, folder, cache)
    code, said, output, runs = wrapped(streamsan, ["--settle"], row.name, command, folder, cache, twice)
    (out / f"{row.name}.txt").write_text(output)
    (out / f"{row.name}.json").write_text(json.dumps(said))
    notes = []
    for trace in sorted(folder.glob(f"{row.name}*.db")):
        checked, told, _ = others.run([streamsan, "check", trace], folder)
        if checked not in (0, 1, 3):  # of `check`: nothing found, found, incomplete
            notes.append(f"check of {trace.name} ends with {checked}: {told.strip()[-200:]}")
            shutil.copy(trace, out)
    if twice:
        _, again, _, _ = wrapped(
            streamsan, ["--settle"], row.name, command, folder, cache, twice)
        notes.append("same twice" if lasting(said) == lasting(again) else "DIFFERS")
        (out / f"{row.name}-again.json").write_text(json.dumps(again))
    loops = loop_time(alone_output)[-1:] + loop_time(output)
    if loops:
        notes.append("loop ms " + " ".join(f"{each:.2f}" for each in loops))
    verdicts = [others.VERDICTS.get(each, f"exit code {each}") for each in (first, code)]
    is_good = verdicts[1] == row.wanted and not any("ends with" in note for note in notes)
    passed = "PASS" if is_good else "FAIL"
    numbers = [f"{each:.1f}" if each is not None else "" for each in
               (seconds, plain[0] if plain else None, runs[1] if len(runs) > 1 else None)]
    return [passed, row.name, *verdicts, others.findings(said), *numbers, ", ".join(notes)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("streamsan", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--samples", type=pathlib.Path)
    parser.add_argument("--triton", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--twice", action="store_true")
    arguments = parser.parse_args()
    streamsan, out = arguments.streamsan.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    folders = {"samples": arguments.samples and arguments.samples.resolve(),
               "triton": arguments.triton and arguments.triton.resolve()}
    only = arguments.only and arguments.only.split(",")
    chosen = [row for row in others.rows(HERE / "programs.tsv") if not only or row.name in only]
    failed = False
    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, \
            open(out / "programs.tsv", "w") as table:
        work = pathlib.Path(work)
        jobs = [pool.submit(one, row, streamsan, folders, work, out, arguments.twice)
                for row in chosen]
        print("\t".join(HEADS), file=table, flush=True)
        for job in jobs:
            cells = job.result()
            failed |= cells[0] == "FAIL"
            for place in (sys.stdout, table):
                print("\t".join(cells), file=place, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
