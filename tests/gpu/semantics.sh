#!/bin/sh
# Runs on a machine with a real GPU, by hand: semantics.sh PROGRAM OUT [REPEATS]
#   PROGRAM  the binary `semantics` (cargo build -p streamsan-tests --bin semantics)
#   OUT      the file that the tables are written to; docs/semantics-on-hardware.md keeps them
# Asks which orders the GPU really keeps; 100 repeats take about three minutes.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 PROGRAM OUT [REPEATS]" >&2; exit 2; }
{
    nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    date -u +%Y-%m-%d
    "$1" "${3:-100}"
} >"$2"
