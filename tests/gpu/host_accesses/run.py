#!/usr/bin/env python3
"""What fences see on a real GPU, and what they cost.

    run.py STREAMSAN OUT [--runs N] [--pairs N] [--seconds N]

STREAMSAN is the command, OUT a folder for programs, traces and reports. Each racy program must be found
RACY by a race of the host, and each clean one have none, N times each (--runs). --pairs N measures
what fences cost, by turns with `--host-accesses=off`, a program of --seconds each. C++ programs are
built with nvcc, or with a C++ compiler and cudart where there is none; programs of PyTorch run where
Python has it. What cannot be run here is said, and fails nothing. Ends with PASS or FAIL.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

CPP = r"""
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#define must(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); std::exit(1); } } while (0)
static volatile unsigned char seen;
static unsigned char *pinned;
static void CUDART_CB fill(void *) { std::memset(pinned, 7, 4096); }
#ifdef __CUDACC__
__global__ void work(unsigned char *to, int rounds) {
    for (int round = 0; round < rounds; round++) to[threadIdx.x] = (unsigned char)(to[threadIdx.x] + round);
}
#endif
int main(int, char **arguments) {
    std::string name = arguments[1];
    bool racy = std::string(arguments[2]) == "racy";
    const size_t bytes = 1 << 20;
    unsigned char *device;
    cudaStream_t stream, other;
    must(cudaMalloc(&device, bytes));
    must(cudaMallocHost(&pinned, bytes));
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int round = 0; round < 8; round++) {
        if (name == "read_early") {
            must(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream));
            if (!racy) must(cudaStreamSynchronize(stream));
            seen = pinned[16];
        } else if (name == "overwritten") {
            must(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream));
            if (!racy) must(cudaStreamSynchronize(stream));
            pinned[16] = (unsigned char)round;
        } else if (name == "host_function") {
            must(cudaLaunchHostFunc(racy ? other : stream, fill, nullptr));
            must(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, stream));
        } else if (name == "loop") {
            must(cudaMemcpyAsync(pinned, device, 65536, cudaMemcpyDeviceToHost, stream));
#ifdef __CUDACC__
        } else if (name == "managed") {
            unsigned char *both;
            must(cudaMallocManaged(&both, 4096));
            work<<<1, 32, 0, stream>>>(both, 100000);
            if (!racy) must(cudaStreamSynchronize(stream));
            seen = both[16];
#endif
        } else return 2;
        if (round < 7 || racy) must(cudaDeviceSynchronize());
    }
    must(cudaDeviceSynchronize());
    if (name == "loop") {
        cudaEvent_t event;
        must(cudaEventCreate(&event));
        for (int round = 0; round < std::atoi(arguments[3]); round++) {
            must(cudaMemcpyAsync(pinned, device, 65536, cudaMemcpyDeviceToHost, stream));
            must(cudaEventRecord(event, stream));
            must(cudaEventSynchronize(event));
            seen = pinned[round % 65536];
        }
    }
    return 0;
}
"""

TORCH = r"""
import sys
import torch
name, racy = sys.argv[1], sys.argv[2] == "racy"
if name == "to_cpu":
    x = torch.ones(1 << 20, device="cuda")
    pinned = torch.empty(1 << 20, pin_memory=True)
    for _ in range(4):
        pinned.copy_(x, non_blocking=True) if racy else pinned.copy_(x)
        bool((pinned[:16] == 1).all())
        torch.cuda.synchronize()
    y = x.to("cpu", non_blocking=racy)
    bool((y == 1).all())
elif name == "refilled":
    side = torch.cuda.Stream()
    pinned = torch.empty(1 << 20, pin_memory=True)
    device = torch.empty(1 << 20, device="cuda")
    event = torch.cuda.Event()
    for step in range(8):
        if not racy and step:
            event.synchronize()
        pinned.fill_(step)
        with torch.cuda.stream(side):
            device.copy_(pinned, non_blocking=True)
            event.record(side)
    torch.cuda.synchronize()
elif name == "training":
    steps = int(sys.argv[3])
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(),
                                torch.nn.Linear(4096, 1024)).cuda()
    best = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.utils.data.TensorDataset(torch.randn(4096, 1024))
    for _ in range(max(1, steps // 32)):
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=128, pin_memory=True):
            batch = batch.cuda(non_blocking=True)
            loss = (model(batch) - batch).square().mean()
            best.zero_grad()
            loss.backward()
            best.step()
    torch.cuda.synchronize()
elif name == "device_only":
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(int(sys.argv[3])):
        x = torch.tanh(x @ x)
    torch.cuda.synchronize()
"""

HOST = {"host-read-early", "host-buffer-reuse"}


def build(out):
    """The C++ program, or why there is none."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source = out / "program.cu"
    source.write_text(CPP)
    program = out / "program"
    if os.access(nvcc, os.X_OK):
        command = [nvcc, "-O1", "-g", "-cudart", "static", "-o", program, source]
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
            command = ["c++", "-x", "c++", source, "-x", "none", f"-I{root}/include", "-O1", "-g", "-o",
                       program, libraries[0], f"-Wl,-rpath,{libraries[0].parent}"]
            built = subprocess.run(command, capture_output=True, text=True)
            return (program, False, "") if built.returncode == 0 else (None, False, built.stderr)
    return None, False, "neither nvcc nor cudart's headers"


def has_torch():
    check = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", check], capture_output=True).returncode == 0


def run(streamsan, out, how, program, limit=600):
    """Exit code and report of one run."""
    report = out / "report.json"
    report.unlink(missing_ok=True)
    command = [streamsan, "run", f"--host-accesses={how}", "-q", "-o", out / "trace.db", "--report",
               f"json={report}", "--", *program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    data = json.loads(report.read_text()) if report.exists() else None
    return ended, data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streamsan", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    program, kernels, why = build(out)
    torch = has_torch()
    script = out / "program.py"
    script.write_text(TORCH)
    cases, costs = [], []
    if program:
        names = ["read_early", "overwritten", "host_function"] + (["managed"] if kernels else [])
        cases += [(f"C++ {name}", [program, name]) for name in names]
        costs.append(("64 KiB copies with an event", [program, "loop", "clean"], 100, 1.3))
    else:
        print(f"no C++ programs: {why.strip()}")
    if torch:
        cases += [(f"PyTorch {name}", [sys.executable, script, name]) for name in ["to_cpu", "refilled"]]
        costs.append(("PyTorch training, pinned loader", [sys.executable, script, "training", "clean"], 32, 1.05))
        costs.append(("no asynchronous host memory", [sys.executable, script, "device_only", "clean"], 32, 1.02))
    else:
        print("no programs of PyTorch: there is none, or it has no GPU")
    passed = bool(cases)
    for name, command in cases:
        for variant in ["racy", "clean"]:
            right, last = 0, ""
            for _ in range(options.runs):
                ended, report = run(options.streamsan, out, "fence", [*command, variant])
                races = [f for f in (report or {}).get("findings", []) if f["severity"] == "race"]
                of_host = any(f["class"] in HOST for f in races)
                good = report is not None and (of_host if variant == "racy" else not races and ended.returncode in (0, 3))
                right += good
                if not good:
                    last = f"{ended.returncode}: {sorted({f['class'] for f in races})} {ended.stderr.strip()[-200:]}"
            passed &= right == options.runs
            print(f"{name:32} {variant:6} {right}/{options.runs} {last}", flush=True)
    if options.pairs:
        import time

        def seconds(how, command, rounds):
            begin = time.monotonic()
            ended, _ = run(options.streamsan, out, how, [*command, str(rounds)], 3600)
            if ended.returncode not in (0, 3):
                raise SystemExit(f"{command}: {ended.returncode} {ended.stderr[-300:]}")
            return time.monotonic() - begin

        for name, command, rounds, most in costs:
            base = seconds("off", command, rounds)
            while True:
                many = seconds("off", command, rounds * 8)
                if many - base > options.seconds / 8:
                    break
                rounds *= 8
            rounds = max(rounds, int(rounds * 7 * options.seconds / (many - base)))
            # What starting costs is the same in both and is taken off.
            ratios = []
            for _ in range(options.pairs):
                with_fences, without = seconds("fence", command, rounds), seconds("off", command, rounds)
                ratios.append((with_fences - base) / max(without - base, 1e-9))
            ratio = statistics.median(ratios)
            passed &= ratio <= most
            print(f"{name:32} {ratio:.3f} (at most {most}; {', '.join(f'{r:.3f}' for r in ratios)})", flush=True)
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
