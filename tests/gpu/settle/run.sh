#!/bin/sh
# Measuring with the whole command, on a machine with a GPU, by hand: run.sh STREAMSAN OUT
#   STREAMSAN  the command, built elsewhere (cargo build --release --bin streamsan)
#   OUT        gets log.txt
# Needs nvcc, ptxas and STREAMSAN_SANITIZER (or a toolkit or Python package with NVIDIA's library).
# Each program of programs.cu has a racy and a clean form; a table of pointers, strided views and a
# cooperative work buffer cannot be told by their code. Prints PASS and FAIL; exit code 1 on a FAIL.
set -u
[ $# -eq 2 ] || { echo "usage: $0 STREAMSAN OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
streamsan=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$out/log.txt
{ nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; date -u +%F; "$streamsan" doctor; } >"$log" 2>&1
nvcc -std=c++17 -O1 -arch=native -o "$work/programs" "$here/programs.cu" >>"$log" 2>&1 \
    || { echo "FAIL	nvcc"; tail -20 "$log"; exit 1; }
for name in table strided cooperative; do
    for form in racy clean; do
        timeout 90 "$streamsan" run --measure='*' -o "$work/$name.db" -- "$work/programs" $name $form \
            >"$work/out" 2>&1
        code=$?
        { echo "== $name $form: exit code $code"; cat "$work/out"; } >>"$log"
        wanted=0
        [ $form = racy ] && wanted=66
        if [ $code -eq $wanted ]; then echo "PASS	$name $form"; else echo "FAIL	$name $form: exit code $code"; fi
    done
done | tee "$work/results"
! grep -q FAIL "$work/results"
