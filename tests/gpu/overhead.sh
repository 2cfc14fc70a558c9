#!/bin/sh
# What tracing costs on a real GPU, by hand: overhead.sh STREAMSAN OUT [PAIRS]
# Runs each program PAIRS times (default 5) without and with streamsan, by turns, and prints the
# medians and their ratio: nanoseconds a launch of an empty kernel, microseconds a step of a small
# transformer. Needs nvcc and a python3 with PyTorch.
set -u
[ $# -ge 2 ] || { echo "usage: $0 STREAMSAN OUT [PAIRS]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
streamsan=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
pairs=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -O2 -o "$work/launch_loop" "$here/programs/launch_loop.cu" || exit 1

compare() { # NAME COMMAND...
    name=$1
    shift
    : >"$work/alone"
    : >"$work/traced"
    for _ in $(seq "$pairs"); do
        "$@" >>"$work/alone" || exit 1
        "$streamsan" run --allow-incomplete -o "$work/$name.db" -- "$@" \
            >>"$work/traced" 2>"$work/report" || { cat "$work/report"; exit 1; }
    done
    python3 - "$name" "$work/alone" "$work/traced" <<'P'
import statistics, sys
name, *files = sys.argv[1:]
alone, traced = ([float(line) for line in open(file)] for file in files)
a, t = statistics.median(alone), statistics.median(traced)
print(f"{name}\talone {a:.0f} ({min(alone):.0f}..{max(alone):.0f})"
      f"\ttraced {t:.0f} ({min(traced):.0f}..{max(traced):.0f})\tratio {t / a:.3f}")
P
    tail -1 "$work/report"
}

{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    date -u +%F
    compare launch_loop_ns "$work/launch_loop"
    compare torch_step_us python3 "$here/programs/torch_loop.py"
} | tee "$out/overhead.txt"
