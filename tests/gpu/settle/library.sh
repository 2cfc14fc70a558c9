#!/bin/sh
# The measuring library alone against known bytes, on a machine with a GPU, by hand:
#   library.sh LIBRARY SANITIZER OUT
#   LIBRARY    libstreamsan_measure.so, built elsewhere (cargo build --release -p streamsan-measure)
#   SANITIZER  NVIDIA's libsanitizer-public.so
#   OUT        gets log.txt
# Needs nvcc and ptxas. Prints PASS and FAIL; exit code 1 when there is a FAIL.
set -u
[ $# -eq 3 ] || { echo "usage: $0 LIBRARY SANITIZER OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
library=$(realpath "$1")
sanitizer=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$out/log.txt
{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; date -u +%F; nvcc --version | tail -2; } >"$log" 2>&1
mkdir "$work/patches"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
ptxas -astoolspatch "-arch=sm_$capability" -o "$work/patches/sm_$capability.cubin" \
    "$here/../../../src/measure/device/patches.ptx" >>"$log" 2>&1 || echo "FAIL	ptxas"
nvcc -std=c++17 -O1 -arch=native -Xcompiler -rdynamic -o "$work/library" "$here/library.cu" -lcuda >>"$log" 2>&1 \
    || { echo "FAIL	nvcc"; tail -20 "$log"; exit 1; }
for kernel in copies strides atomics module_variable asynchronous bulk tensor vector_copy through_table spins \
    scattered reversed cooperative; do
    echo "glob $kernel"
done >"$work/selection"
export STREAMSAN_MEASURE=$work/selection STREAMSAN_SANITIZER=$sanitizer STREAMSAN_MEASURE_PATCHES=$work/patches
export CUDA_INJECTION64_PATH=$library
for test in known many released large graphs full_grid running; do
    begin=$(date +%s%N)
    timeout 60 "$work/library" $test >"$work/$test.out" 2>&1
    code=$?
    echo "== $test: exit code $code, $((($(date +%s%N) - begin) / 1000000)) ms" >>"$log"
    cat "$work/$test.out" >>"$log"
    grep -c PASS "$work/$test.out" | sed "s/^/PASS	$test: /"
    grep FAIL "$work/$test.out" | sed "s/^FAIL	/FAIL	$test: /"
    [ $code -eq 0 ] || echo "FAIL	$test: exit code $code"
done | tee "$work/results"
cat "$log" >&2
! grep -q FAIL "$work/results"
