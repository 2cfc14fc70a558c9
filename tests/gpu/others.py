"""Runs programs that nobody here wrote on a real GPU and tells what streamsan says of them.

    others.py STREAMSAN OUT [--samples FOLDER] [--hecbench FOLDER] [--only NAME,...] [--jobs N]

    STREAMSAN   the command, built elsewhere (cargo build --release --bin streamsan)
    OUT         where results go: others.tsv, others.md, one report a program, and small traces
    --samples   a checkout of NVIDIA's CUDA samples; without it the rows of samples are left out
    --hecbench  a checkout of HeCBench, likewise
    --jobs      programs at a time (default 1: times are meant to be compared)

The rows are those of others.tsv beside this file. Nothing is fetched: nvcc and the Python packages
must be installed. A row that needs more GPUs than there are is left out and counted.

Each program runs alone, then twice under `streamsan run`: cold (with an empty cache of kernels) and
warm. A program's time from its end to the verdict is what passes between the end of the program and
the end of the command. A row is PASS when both verdicts are the one that the table wants, and OPEN
where a run is INCOMPLETE for kernels that follow pointers in memory alone, which reading code cannot
settle. Exit code 1 when a row is FAIL.
"""

import argparse
import concurrent.futures
import dataclasses
import glob
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VERDICTS = {0: "CLEAN", 3: "INCOMPLETE", 66: "RACY"}
LIMIT = 240  # seconds for one run
SMALL = 8_000_000  # bytes of a trace that is kept


@dataclasses.dataclass
class Row:
    """A line of others.tsv: where the program comes from and what is wanted of it."""

    name: str
    source: str  # samples:FOLDER, hecbench:FOLDER, triton:FILE, python:FILE, cuda:FILE
    build: str  # further arguments of nvcc, or -
    arguments: str  # of the program, or -
    gpus: int
    wanted: str  # CLEAN or RACY


def rows(table):
    lines = [line for line in table.read_text().splitlines() if line and not line.startswith("#")]
    return [
        Row(*cells[:4], int(cells[4]), cells[5]) for cells in (line.split("\t") for line in lines[1:])
    ]


def built(row, folders, work):
    """The command of a row and the folder to run it in, after building it; None to leave it out."""
    kind, where = row.source.split(":", 1)
    arguments = [] if row.arguments == "-" else shlex.split(row.arguments)
    if kind == "python":
        command = [sys.executable, str(HERE / where), *arguments]
        if row.gpus > 1 or "torchrun" in row.build:
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
                       "--nproc-per-node", str(row.gpus), *command[1:]]
        return command, work
    if folders.get(kind) is None and kind != "cuda":
        return None
    if kind == "triton":
        return [sys.executable, str(folders[kind] / where), *arguments], work
    extra = [] if row.build == "-" else shlex.split(row.build)
    nvcc = ["nvcc", "-std=c++17", "-O2", "-lineinfo", "-Wno-deprecated-gpu-targets"]
    nvcc += ["-arch=native"]
    nvcc += [f"-I{folders['samples'] / 'Common'}"] if folders["samples"] else []
    folder = work / row.name
    if kind == "cuda":
        folder.mkdir()
        shutil.copy(HERE / where, folder)
    else:
        shutil.copytree(folders[kind] / where, folder)
    # Modules that a sample loads at run time lie beside it, as its own build file would leave them.
    for module in [word for word in extra if word.startswith("ptx:")]:
        extra.remove(module)
        name = module.split(":", 1)[1]
        target = folder / (pathlib.Path(name).stem + "64.ptx")
        subprocess.run([*nvcc, "-ptx", "-o", target, folder / name], check=True,
                       capture_output=True)
    program = folder / row.name
    patterns = [word for word in extra if word.startswith("sources:")]
    extra = [word for word in extra if word not in patterns]
    names = patterns[0].split(":", 1)[1].split(",") if patterns else ["*.cu", "*.cpp"]
    sources = [path for name in names for path in sorted(glob.glob(str(folder / name)))]
    shared = [word for word in extra if word.startswith("common:")]
    extra = [word for word in extra if word not in shared]
    sources += [folders["samples"] / "Common" / word.split(":", 1)[1] for word in shared]
    subprocess.run([*nvcc, "-o", program, *sources, *extra], check=True, capture_output=True,
                   cwd=folder)
    return [str(program), *arguments], folder


def run(command, folder, environment=None):
    """Exit code, output and seconds of a command, which is killed at the limit."""
    begin = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=environment, timeout=LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = "limit", late.stdout or b""
    return code, output.decode(errors="replace"), time.monotonic() - begin


def wrapped(streamsan, name, command, folder, cache, out):
    """A run under streamsan: its code, its report, its output, and seconds from end to verdict."""
    end, report = folder / f"{name}.end", folder / f"{name}.json"
    trace = folder / f"{name}.db"
    told = 'start=$(date +%s.%N); "$@"; code=$?; echo "$start $(date +%s.%N)" >"$0"; exit $code'
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache))
    code, output, _ = run(
        [streamsan, "run", "-o", trace, "--report", f"json={report}", "--",
         "sh", "-c", told, str(end), *command], folder, environment)
    now = time.time()
    try:
        start, ended = map(float, end.read_text().split())
    except (OSError, ValueError):
        start = ended = now
    try:
        said = json.loads(report.read_text())
    except (OSError, ValueError):
        said = {"findings": []}
    if trace.exists() and trace.stat().st_size < SMALL:
        shutil.copy(trace, out / f"{name}.db")
    return code, said, output, ended - start, now - ended


def findings(report):
    """Findings in words, by class and confidence, without lints."""
    told = {}
    for finding in report["findings"]:
        if finding["severity"] != "lint":
            key = f"{finding['severity']} {finding['class']} {finding['confidence']}"
            told[key] = told.get(key, 0) + finding["count"]
    return ", ".join(f"{count} {key}" for key, count in sorted(told.items())) or "-"


def one(row, streamsan, folders, work, out):
    """The cells of a row's result, the first of them PASS, FAIL or SKIP."""
    try:
        made = built(row, folders, work)
    except subprocess.CalledProcessError as error:
        (out / f"{row.name}.txt").write_bytes(error.stderr or b"")
        return ["FAIL", row.name, "not built", "", "", "", "", "", ""]
    if made is None:
        return ["SKIP", row.name, "no sources", "", "", "", "", "", ""]
    command, folder = made
    folder = work / f"{row.name}-runs" if folder == work else folder
    folder.mkdir(exist_ok=True)
    alone, alone_output, seconds = run(command, folder)
    if alone != 0:
        (out / f"{row.name}.txt").write_text(alone_output)
        return ["FAIL", row.name, f"ends with {alone} by itself", "", "", "", "", "", ""]
    cache = pathlib.Path(tempfile.mkdtemp(dir=work))
    cold_code, said, output, cold_run, cold_end = wrapped(streamsan, row.name, command, folder, cache, out)
    warm_code, _, _, warm_run, warm_end = wrapped(streamsan, row.name, command, folder, cache, out)
    (out / f"{row.name}.txt").write_text(output)
    (out / f"{row.name}.json").write_text(json.dumps(said))
    verdict = VERDICTS.get(cold_code, f"exit code {cold_code}")
    same = verdict == VERDICTS.get(warm_code)
    kinds = {reason["kind"] for reason in said.get("reasons", [])}
    passed = "PASS" if verdict == row.wanted and same else "FAIL"
    if verdict == "INCOMPLETE" and same and kinds == {"pointers-in-memory"}:
        passed = "OPEN"
    reason = "" if same else f"warm {warm_code}"
    return [passed, row.name, verdict, findings(said), f"{seconds:.1f}", f"{cold_run:.1f}",
            f"{cold_end:.2f}", f"{warm_end:.2f}", reason]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("streamsan", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--samples", type=pathlib.Path)
    parser.add_argument("--hecbench", type=pathlib.Path)
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    streamsan, out = arguments.streamsan.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    folders = {"samples": arguments.samples and arguments.samples.resolve(),
               "hecbench": arguments.hecbench and arguments.hecbench.resolve()}
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    gpus = len(listed.stdout.splitlines())
    only = arguments.only and arguments.only.split(",")
    chosen = [row for row in rows(HERE / "others.tsv") if not only or row.name in only]
    left_out = [row.name for row in chosen if row.gpus > gpus]
    results = []
    heads = ["", "program", "verdict", "findings", "alone s", "under s", "end cold s", "end warm s", ""]
    with tempfile.TemporaryDirectory() as work, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool, \
            open(out / "others.tsv", "w") as table:
        work = pathlib.Path(work)
        jobs = [pool.submit(one, row, streamsan, folders, work, out)
                for row in chosen if row.gpus <= gpus]
        for job in jobs:
            results.append(job.result())
            print("\t".join(results[-1]), flush=True)
            print("\t".join(results[-1]), file=table, flush=True)
    with open(out / "others.md", "w") as page:
        for cells in [heads[1:8], ["---"] * 7, *[cells[1:8] for cells in results]]:
            page.write("| " + " | ".join(cells) + " |\n")
    if left_out:
        print(f"left out, more than {gpus} GPUs: {' '.join(left_out)}")
    return 1 if any(cells[0] == "FAIL" for cells in results) else 0


if __name__ == "__main__":
    sys.exit(main())
