#!/bin/sh
# What kernels really touch against what streamsan concludes, on a machine with a GPU, by hand:
#   run.sh STREAMSAN OUT
#   STREAMSAN  the command, built elsewhere (cargo build --release --bin streamsan)
#   OUT        gets table.md, kernels.tsv, violations.txt, result.json, results.tsv, log.txt and
#              traces.tar.xz
# Needs nvcc, nvdisasm and a python3 with NumPy, PyTorch, Triton, CuPy and JAX. The measuring tool is
# built with SANITIZER (default: that of the toolkit; see tool/build.sh) unless TOOL names a folder in
# which it was built before. With MODULES set to a folder, the machine code goes there and the logs tell
# parameters, so that access_replay can ask again without a GPU. Takes about a minute and a half.
# Prints a table of PASS and FAIL; exit code 1 when there is a FAIL.
set -u
[ $# -eq 2 ] || { echo "usage: $0 STREAMSAN OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
streamsan=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$out/results.tsv
log=$out/log.txt
: >"$results"
{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    date -u +%F
    nvcc --version | tail -2
    nvdisasm --version | tail -2
    "$streamsan" doctor
} >"$log" 2>&1

result() { # VERDICT WHAT WHY
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" | tee -a "$results"
}

# The tool, and whether it sees what it should.
if [ -n "${TOOL:-}" ]; then
    cp -r "$TOOL" "$work/tool" # what is carried may not be executable in place
else
    sanitizer=${SANITIZER:-$(dirname "$(realpath "$(command -v nvcc)")")/../compute-sanitizer}
    [ -d "$sanitizer" ] || sanitizer=/usr/local/cuda/compute-sanitizer
    sh "$here/tool/build.sh" "$sanitizer" "$work/tool" >>"$log" 2>&1 || {
        result FAIL tool "does not build, see log.txt"
        exit 1
    }
fi
export CUDA_MODULE_LOADING=LAZY
if nvcc -std=c++17 -O1 -arch=native -o "$work/selftest" "$here/tool/selftest.cu" -lcuda >>"$log" 2>&1; then
    CUDA_INJECTION64_PATH=$work/tool/libaccess.so ACCESS_LOG=$work/selftest.json \
        timeout 60 "$work/selftest" >"$work/selftest.expected" 2>>"$log"
    python3 "$here/tool/check_log.py" "$work/selftest.expected" "$work/selftest.json" >"$work/selftest" 2>&1
    code=$?
    cat "$work/selftest" >>"$log"
    [ $code -eq 0 ] && result PASS tool "$(grep -c PASS "$work/selftest") checks" \
        || result FAIL tool "$(grep FAIL "$work/selftest" | head -1)"
else
    result FAIL tool "its test does not build, see log.txt"
fi

# Each program alone, which also fills the caches of its compilers, then traced and measured.
programs="transformer cublas_sweep triton_set cupy_sample jax_sample"
for name in $programs; do
    mkdir -p "$work/caches/$name"
    (
        export TRITON_CACHE_DIR="$work/caches/$name/triton" CUPY_CACHE_DIR="$work/caches/$name/cupy"
        timeout 120 python3 "$here/$name.py" >"$work/$name.alone" 2>"$work/$name.alone.err"
    ) &
done
wait
if "$streamsan" run --help | grep -q torch-allocator; then
    programs="$programs transformer_async"
fi
for name in $programs; do
    script=${name%_async}
    option=
    [ "$script" = "$name" ] || option=--torch-allocator=async
    (
        export TRITON_CACHE_DIR="$work/caches/$script/triton" CUPY_CACHE_DIR="$work/caches/$script/cupy"
        export CUDA_INJECTION64_PATH="$work/tool/libaccess.so" ACCESS_LOG="$work/$name.%p.log"
        if [ -n "${MODULES:-}" ]; then
            mkdir -p "$MODULES/$name"
            export ACCESS_MODULES="$MODULES/$name"
        fi
        begin=$(date +%s)
        # shellcheck disable=SC2086 # no option or one
        timeout 200 "$streamsan" run $option --allow-incomplete -o "$work/$name.db" -- \
            python3 "$here/$script.py" >"$work/$name.out" 2>"$work/$name.err"
        echo "$name: exit code $?, $(($(date +%s) - begin)) s" >"$work/$name.time"
    ) &
done
wait
compared=
for name in $programs; do
    script=${name%_async}
    { cat "$work/$name.time" "$work/$script.alone.err" "$work/$name.out" "$work/$name.err"; } >>"$log"
    # The process that launches has the longest log.
    measured=$(ls -S "$work/$name".*.log 2>/dev/null | head -1)
    if [ -z "$measured" ] || [ ! -f "$work/$name.db" ]; then
        result FAIL "$name" "was not measured, see log.txt"
    elif [ ! -s "$work/$script.alone" ]; then
        result FAIL "$name" "printed nothing even alone, see log.txt"
    else
        cmp -s "$work/$script.alone" "$work/$name.out" \
            || result FAIL "$name" "another standard output, see log.txt"
        mv "$measured" "$work/$name.json"
        compared="$compared $name=$work/$name.db,$work/$name.json"
    fi
done
# shellcheck disable=SC2086 # several words
python3 "$here/compare.py" "$out" $compared 2>>"$log" | tee -a "$results"
[ -s "$out/table.md" ] && cat "$out/table.md" || result FAIL comparison "gave no table, see log.txt"
(cd "$work" && python3 -c '
import sys, tarfile
with tarfile.open(sys.argv[1], "w:xz", preset=3) as tar:
    for name in sys.argv[2:]:
        tar.add(name)
' "$out/traces.tar.xz" *.db *.json) >>"$log" 2>&1 \
    || result FAIL traces "were not packed, see log.txt"
! grep -q '^FAIL' "$results"
