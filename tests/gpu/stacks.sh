#!/bin/sh
# Stacks on a real GPU, by hand: stacks.sh STREAMSAN OUT [RUNS]
# Races in C++ and in Python must be told with the lines of both calls. Then what stacks cost: each
# loop runs RUNS times (default 3) alone, without stacks and with them, by turns; medians, and ratios
# to the runs alone. Needs nvcc and a python3 with PyTorch. Exit code 1 when a line is not told.
set -u
[ $# -ge 2 ] || { echo "usage: $0 STREAMSAN OUT [RUNS]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)/programs
streamsan=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
runs=${3:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

lines() { # NAME SOURCE COMMAND...
    name=$1
    source=$2
    shift 2
    "$streamsan" run --allow-incomplete -o "$out/$name.db" -- "$@" \
        >"$out/$name.txt" 2>&1
    code=$?
    verdict=PASS
    [ "$code" -eq 66 ] || verdict=FAIL
    for call in "the write" "the read"; do
        line=$(grep -n "$call\$" "$source" | cut -d: -f1)
        grep -q "$(basename "$source"):$line\b" "$out/$name.txt" || verdict=FAIL
    done
    printf '%s\t%s\texit code %s\n' "$verdict" "$name" "$code"
}

cost() { # NAME KINDS COMMAND...
    name=$1
    kinds=$2
    shift 2
    for _ in $(seq "$runs"); do
        "$@" >>"$work/$name.alone" || return 1
        for stacks in $kinds; do
            "$streamsan" run --allow-incomplete --stacks=$stacks -o "$work/$name.db" -- "$@" \
                >>"$work/$name.$stacks" 2>"$work/report" || { cat "$work/report"; return 1; }
        done
    done
    # shellcheck disable=SC2086
    python3 - "$name" "$work/$name" alone $kinds <<'P'
import statistics, sys
name, path, *kinds = sys.argv[1:]
runs = {kind: [float(line) for line in open(f"{path}.{kind}")] for kind in kinds}
alone = statistics.median(runs["alone"])
for kind, values in runs.items():
    median = statistics.median(values)
    print(f"{name}\t{kind}\t{median:.0f} ({min(values):.0f}..{max(values):.0f})\tratio {median / alone:.3f}")
P
}

{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    date -u +%F
    # A function that ends with a call leaves no frame but for this.
    nvcc -O2 -lineinfo -Xcompiler -g,-fno-optimize-sibling-calls -o "$work/unordered_copy" "$here/unordered_copy.cu" &&
        lines unordered_copy "$here/unordered_copy.cu" "$work/unordered_copy"
    lines torch_unordered "$here/torch_unordered.py" python3 "$here/torch_unordered.py"
    nvcc -O2 -o "$work/launch_loop" "$here/launch_loop.cu" &&
        cost launch_loop_ns "off native" "$work/launch_loop"
    cost torch_step_us "off auto" python3 "$here/torch_loop.py"
} | tee "$out/stacks.txt"
! grep -q FAIL "$out/stacks.txt"
