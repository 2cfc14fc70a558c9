#!/usr/bin/env python3
"""What fences see on a real GPU, what they leave alone, and what they cost.

    run.py STREAMSAN OUT [--runs N] [--variants racy,clean] [--pairs N] [--seconds N]
           [--only WORD,...] [--samples FOLDER]

STREAMSAN is the command, OUT a folder for programs, traces and reports. Three groups of rows:

mistakes  Each racy program must be found RACY by a race of the host, and its clean twin have none, N
          times each (--runs). --variants chooses one of the two.
clean     Programs without such a mistake print what they print without streamsan, have no race that
          they have not with `--host-accesses=off`, and no reason to be INCOMPLETE that they have not
          then. With --samples also some of NVIDIA's CUDA samples, from a checkout of them.
cost      By turns with `--host-accesses=off`, N pairs of runs (--pairs) whose loops take some
          --seconds each; the median of the pairs' ratios must be within the row's limit.

--only takes words; rows whose group and name contain one of them are run. C++ programs are built with
nvcc, or with a C++ compiler and cudart where there is none. What cannot be run here is said, and fails
nothing; where nothing can be run, that fails. Ends with PASS or FAIL.
"""

import argparse
import glob
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
GPU = HERE.parent
HOST = {"host-read-early", "host-buffer-reuse"}
# Seconds that a run may take.
LIMIT = 300

# Samples that use host memory beside the device: folder, what nvcc needs beside the sources.
SAMPLES = {
    "simpleZeroCopy": ("Samples/0_Introduction", []),
    "UnifiedMemoryStreams": ("Samples/0_Introduction", ["-lcublas", "-Xcompiler=-fopenmp"]),
    "systemWideAtomics": ("Samples/0_Introduction", []),
    "simpleStreams": ("Samples/0_Introduction", []),
    "simpleIPC": ("Samples/0_Introduction", ["Common/helper_multiprocess.cpp"]),
}


def nvcc():
    found = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return found if os.access(found, os.X_OK) else None


def build(out):
    """The C++ program, whether it has kernels, or why there is none."""
    source, program = HERE / "program.cu", out / "program"
    if nvcc():
        command = [nvcc(), "-O1", "-g", "-std=c++17", "-arch=native", "-cudart", "static", "-o", program, source]
        built = subprocess.run(command, capture_output=True, text=True)
        return (program, True, "") if built.returncode == 0 else (None, False, built.stderr)
    roots = [pathlib.Path("/usr/local/cuda")]
    try:
        import nvidia.cuda_runtime as runtime  # the package that PyTorch brings
        roots.append(pathlib.Path(list(runtime.__path__)[0]))
    except ImportError:
        pass
    for root in roots:
        libraries = sorted(root.glob("lib*/libcudart.so*"))
        if (root / "include/cuda_runtime.h").exists() and libraries:
            command = ["c++", "-std=c++17", "-x", "c++", source, "-x", "none", f"-I{root}/include", "-O1", "-g",
                       "-pthread", "-o", program, libraries[0], f"-Wl,-rpath,{libraries[0].parent}"]
            built = subprocess.run(command, capture_output=True, text=True)
            return (program, False, "") if built.returncode == 0 else (None, False, built.stderr)
    return None, False, "neither nvcc nor cudart's headers"


def build_sample(name, samples, out):
    """The command of a sample, or why there is none."""
    folder, extra = SAMPLES[name]
    source = samples / folder / name
    if not source.is_dir() or not nvcc():
        return None, "no such folder" if nvcc() else "no nvcc"
    copy = out / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    sources = [path for end in ("*.cu", "*.cpp") for path in sorted(glob.glob(str(copy / end)))]
    sources += [str(samples / word) for word in extra if not word.startswith("-")]
    command = [nvcc(), "-std=c++17", "-O2", "-arch=native", "-Wno-deprecated-gpu-targets",
               f"-I{samples / 'Common'}", "-o", copy / name, *sources, *[w for w in extra if w.startswith("-")]]
    built = subprocess.run(command, capture_output=True, text=True, cwd=copy)
    return ([copy / name], "") if built.returncode == 0 else (None, built.stderr.strip()[-200:])


def gpus():
    """GPUs that PyTorch sees; 0 without it."""
    check = "import torch; print(torch.cuda.device_count())"
    asked = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    return int(asked.stdout) if asked.returncode == 0 else 0


def has(module):
    # Finding it is enough, and does not start it.
    check = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([sys.executable, "-c", check], capture_output=True).returncode == 0


class Runs:
    """Runs programs with and without streamsan."""

    def __init__(self, streamsan, out):
        self.streamsan, self.out = streamsan, out

    def alone(self, program):
        return subprocess.run(program, capture_output=True, text=True, timeout=LIMIT, cwd=self.out)

    def under(self, how, program):
        """Exit code and output of one run, and its report."""
        report = self.out / "report.json"
        report.unlink(missing_ok=True)
        command = [self.streamsan, "run", f"--host-accesses={how}", "--exit-as-program", "-o",
                   self.out / "trace.db", "--report", f"json={report}", "--", *program]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=self.out)
        return ended, json.loads(report.read_text()) if report.exists() else None


def races(report):
    return [f for f in report["findings"] if f["severity"] == "race"]


def scope(ended):
    """The line about fences of a run."""
    lines = [line for line in ended.stderr.splitlines() if "host accesses:" in line]
    return lines[-1].strip() if lines else "no line about fences"


def places(report):
    """Whether the host's sides of races of the host have frames of machine code, and of Python."""
    found = set()
    for race in races(report):
        for access in race["accesses"]:
            if race["class"] in HOST and access["stream"] is None:
                for frame in access.get("stack", []):
                    found.add("python" if frame["image"] is None else "native")
    return found


def mistake(runs, name, command, options, both_lines=False):
    """Whether a racy program was found each time, and its clean twin never."""
    passed = True
    for variant in options.variants:
        right, last = 0, ""
        for _ in range(options.runs):
            ended, report = runs.under("fence", [*command, variant])
            good = report is not None and ended.returncode == 0
            if good and variant == "racy":
                good = any(race["class"] in HOST for race in races(report))
                if good and both_lines:
                    good = {"python", "native"} <= places(report)
            elif good:
                good = not any(race["class"] in HOST for race in races(report))
            right += good
            if not good:
                classes = sorted({race["class"] for race in races(report)}) if report else "no report"
                last = f"{ended.returncode}: {classes} {scope(ended)} {ended.stderr.strip()[-300:]}"
        passed &= right == options.runs
        print(f"{name:32} {variant:6} {right}/{options.runs} {last}", flush=True)
    return passed


def clean(runs, name, command, compare=True):
    """Whether fences change nothing of a program and find nothing in it."""
    alone = runs.alone(command)
    ended, report = runs.under("fence", command)
    wrong = []
    if report is None or ended.returncode != alone.returncode:
        wrong.append(f"ends with {ended.returncode}, alone with {alone.returncode}")
    if compare and ended.stdout != alone.stdout:
        wrong.append("prints something else")
    if report is not None and report["verdict"] != "CLEAN":
        _, without = runs.under("off", command)
        kinds = lambda report: {reason["kind"] for reason in report["reasons"]}
        ids = lambda report: {(race["class"], race["id"]) for race in races(report)}
        if without is None or not kinds(report) <= kinds(without) or not ids(report) <= ids(without):
            wrong.append(f"{report['verdict']}: {sorted(kinds(report))} {sorted(ids(report))}")
    verdict = report["verdict"] if report else "no report"
    words = "; ".join(wrong) + " " + ended.stderr.strip()[-400:] if wrong else f"{verdict}, {scope(ended)}"
    print(f"{name:32} {'WRONG' if wrong else 'right'}  {words}", flush=True)
    return not wrong


def cost(runs, name, command, rounds, most, options):
    """Whether the median ratio of pairs is within the limit."""
    def seconds(how):
        ended, _ = runs.under(how, [*command, str(rounds)])
        said = [line for line in ended.stdout.splitlines() if line.startswith("seconds ")]
        if ended.returncode != 0 or not said:
            raise SystemExit(f"{name}: {ended.returncode} {ended.stderr[-500:]}")
        return float(said[-1].split()[1]), scope(ended)

    while True:
        took, _ = seconds("off")
        if took > options.seconds / 4:
            break
        rounds *= 4
    rounds = max(1, int(rounds * options.seconds / took))
    ratios, words = [], ""
    for pair in range(options.pairs):
        order = ["fence", "off"] if pair % 2 == 0 else ["off", "fence"]
        both = {how: seconds(how) for how in order}
        words = both["fence"][1]
        ratios.append(both["fence"][0] / both["off"][0])
    ratio = statistics.median(ratios)
    each = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    verdict = "right" if ratio <= most else "WRONG"
    print(f"{name:32} {verdict}  {ratio:.3f} (at most {most}; {each}; {words})", flush=True)
    return ratio <= most


def rows(options, out):
    """Group, name and a function of each row that can be run here; says what cannot."""
    found = []
    program, kernels, why = build(out)
    count = gpus()
    script, python = HERE / "program.py", sys.executable
    torchrun = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]

    def add(group, name, run):
        found.append((group, name, run))

    def add_clean(name, command, compare=True):
        add("clean", name, lambda runs: clean(runs, name, command, compare))

    def add_cost(name, command, rounds, most):
        add("cost", name, lambda runs: cost(runs, name, command, rounds, most, options))

    if program:
        for name in ["read_early", "overwritten", "host_function"] + (["managed"] if kernels else []):
            add("mistakes", f"C++ {name}", lambda runs, name=name: mistake(runs, f"C++ {name}", [program, name], options))
        add_cost("64 KiB copies with an event", [program, "copies", "clean"], 2000, 1.3)
        add_cost("the same beside 8 threads", [program, "copies_beside", "clean"], 2000, 1.3)
        if kernels:
            add_cost("flags under a kernel", [program, "flags", "clean"], 2000, 1.05)
    else:
        print(f"no C++ programs: {why.strip()}")
    if count:
        for name in ["to_cpu", "refilled", "compiled", "fsdp_hook"]:
            both = name == "compiled"
            add("mistakes", f"PyTorch {name}", lambda runs, name=name, both=both: mistake(
                runs, f"PyTorch {name}", [python, script, name], options, both))
        add_clean("PyTorch training, pinned loader", [python, script, "training", "clean"])
        add_clean("the same with two workers", [python, script, "training_workers", "clean"])
        add_cost("PyTorch training, pinned loader", [python, script, "training", "clean"], 512, 1.05)
        add_cost("no asynchronous host memory", [python, script, "device_only", "clean"], 1024, 1.02)
        if has("transformers"):
            add_clean("HF generation, offloaded cache", [python, GPU / "programs/others/hf_generation.py", "offloaded"])
        else:
            print("no generation with Hugging Face: transformers is not installed")
        if count > 1:
            for kind in ["ddp", "fsdp2"]:
                # Several processes write by turns as they come.
                add_clean(f"{kind} on two GPUs", [*torchrun, "2", GPU / "programs/torch_ranks.py", kind, "clean"], False)
        else:
            print("no programs of two GPUs: there is one")
    else:
        print("no programs of PyTorch: there is none, or it has no GPU")
    for module, path in [("cupy", "access/cupy_sample.py"), ("jax", "access/jax_sample.py")]:
        if has(module):
            add_clean(module, [python, GPU / path])
        else:
            print(f"no program of {module}: it is not installed")
    for name in SAMPLES if options.samples else []:
        def sample(runs, name=name):
            command, why = build_sample(name, options.samples.resolve(), out)
            if command is None:
                print(f"{name:32} left out: {why}", flush=True)
                return True
            # They print times.
            return clean(runs, name, command, False)
        add("clean", f"sample {name}", sample)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streamsan", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--variants", type=lambda words: words.split(","), default=["racy", "clean"])
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", type=lambda words: words.split(","), default=[""])
    parser.add_argument("--samples", type=pathlib.Path)
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    runs = Runs(options.streamsan, out)
    chosen = [(name, run) for group, name, run in rows(options, out)
              if (group != "cost" or options.pairs) and any(word in f"{group} {name}" for word in options.only)]
    passed = bool(chosen)
    for name, run in chosen:
        try:
            passed &= run(runs)
        except subprocess.TimeoutExpired:
            print(f"{name:32} WRONG  takes longer than {LIMIT} s", flush=True)
            passed = False
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
