#!/bin/sh
# Builds the programs here into a folder: build.sh FOLDER. Optimised and without frame pointers, as
# programs are. Needs C and C++ compilers, no CUDA.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
flags="-g -O2 -fomit-frame-pointer -Wall -Wextra -Werror -I$here/../c"
mkdir -p "$out/link"
${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/../c/link_stub.c"
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 $flags -o "$out/inlined" "$here/inlined.c" -L"$out/link" -lcuda
for plugin in first second; do
    # shellcheck disable=SC2086
    ${CXX:-c++} -std=c++17 $flags -shared -fPIC -DPLUGIN=$plugin -o "$out/lib$plugin.so" \
        "$here/plugin.cpp"
done
# shellcheck disable=SC2086
${CC:-cc} -std=gnu11 $flags -o "$out/plugins" "$here/plugins.c" -L"$out/link" -lcuda -ldl
