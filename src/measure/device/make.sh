#!/bin/sh
# Makes the committed PTX from the sources beside it: make.sh [OUT]
#   OUT  the folder that gets patches.ptx and drain.ptx; this one by default
# Needs nvcc (NVCC) of CUDA 12 or 13. The code uses nothing newer than PTX 7.0, so its version is lowered to that:
# older assemblers and drivers take it, too. The first lines, which name the compiler's build, are left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$(realpath "${1:-$here}")
cd "$here"
for name in patches drain; do
    option=
    [ $name = drain ] || option=--compile-as-tools-patch
    "${NVCC:-nvcc}" -std=c++17 -O2 -ptx -arch=compute_75 $option -o "$out/$name.ptx.made" $name.cu
    {
        echo "// Made from $name.cu by make.sh."
        sed -e '1,/^$/d' -e 's/^\.version .*/.version 7.0/' "$out/$name.ptx.made"
    } >"$out/$name.ptx"
    rm "$out/$name.ptx.made"
done
