#!/usr/bin/env python3
"""Whether measured bytes lie within what the kernels' code was read to touch, on a real GPU.

    within.py STREAMSAN OUT [--only NAME,...]

    STREAMSAN   the command, built elsewhere (cargo build --release --bin streamsan)
    OUT         where each program's report and output go

The programs are those of ../access: a transformer, cuBLAS over many shapes, Triton, CuPy and JAX. Each
runs once without measuring, which reads its kernels into a fresh cache, and once with every kernel
measured; the collector holds every measured launch against the conclusions. A row is PASS when launches
were measured and none touched a byte outside. Python packages, ptxas, nvdisasm and NVIDIA's measuring
library (STREAMSAN_SANITIZER) must be there. Exit code 1 when a row is FAIL.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(__file__).resolve().parent.parent / "access"
NAMES = ["transformer", "cublas_sweep", "triton_set", "cupy_sample", "jax_sample"]
# Seconds that a run may take.
LIMIT = 280


def row(streamsan, out, name):
    """Verdict and words of one program."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_CACHE_HOME=f"{folder}/cache", TRITON_CACHE_DIR=f"{folder}/triton",
                           CUPY_CACHE_DIR=f"{folder}/cupy", CUDA_MODULE_LOADING="LAZY")
        report = out / f"{name}.json"
        for options in ([], ["--measure=*"]):
            report.unlink(missing_ok=True)
            command = [streamsan, "run", *options, "--exit-as-program", "-o", f"{folder}/trace.db", "--report",
                       f"json={report}", "--", sys.executable, str(PROGRAMS / f"{name}.py")]
            ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT)
            (out / f"{name}.txt").write_text(ended.stdout + ended.stderr)
            if ended.returncode != 0 or not report.exists():
                return "FAIL", f"{ended.returncode}: {ended.stderr[-300:]}"
    measured = json.loads(report.read_text())["coverage"]["measured"]
    outside = [kernel for kernel in measured["by_kernel"] if kernel["outside"]]
    words = "{kernels} kernels, {launches} launches, {whole} whole, {in_part} in part, {not_measured} not".format(**measured)
    words += "".join(f"; {kernel['outside']} outside: {kernel['kernel'][:90]}" for kernel in outside)
    return ("FAIL" if outside or not measured["whole"] else "PASS"), words


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streamsan", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", type=lambda words: words.split(","), default=NAMES)
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    passed = True
    with concurrent.futures.ThreadPoolExecutor() as pool:
        rows = {pool.submit(row, options.streamsan, out, name): name for name in options.only}
        for done in concurrent.futures.as_completed(rows):
            try:
                verdict, words = done.result()
            except subprocess.TimeoutExpired:
                verdict, words = "FAIL", f"takes longer than {LIMIT} s"
            passed &= verdict == "PASS"
            print(f"{verdict}\t{rows[done]}\t{words}", flush=True)
    return 0 if passed and rows else 1


if __name__ == "__main__":
    sys.exit(main())
