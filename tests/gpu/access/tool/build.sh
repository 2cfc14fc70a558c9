#!/bin/sh
# Builds the measuring tool: build.sh SANITIZER OUT
#   SANITIZER  the folder `compute-sanitizer` of the CUDA toolkit or of the PyPI package
#              nvidia-cuda-sanitizer-api (2026.2 or later sees tensor loads)
#   OUT        gets libaccess.so, patches.fatbin and a copy of libsanitizer-public.so
# Needs nvcc and a C++ compiler. ARCHITECTURES: numbers such as "80 90", default "90".
set -eu
[ $# -eq 2 ] || { echo "usage: $0 SANITIZER OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
sanitizer=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
nvcc=${NVCC:-nvcc}
toolkit=$(realpath "$(dirname "$(command -v "$nvcc")")/..")
codes=
for number in ${ARCHITECTURES:-90}; do
    codes="$codes -gencode arch=compute_$number,code=sm_$number"
done
# shellcheck disable=SC2086 # several words
"$nvcc" -std=c++17 -O2 --fatbin --compile-as-tools-patch $codes -I"$sanitizer/include" \
    -o "$out/patches.fatbin" "$here/patches.cu"
cp -f "$sanitizer/libsanitizer-public.so" "$out/"
"${CXX:-c++}" -std=c++17 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -I"$sanitizer/include" \
    -I"$toolkit/include" -o "$out/libaccess.so" "$here/tool.cpp" \
    -L"$out" -lsanitizer-public '-Wl,-rpath,$ORIGIN' -lpthread
