#!/bin/sh
# Builds one of the C programs here: build.sh FOLDER NAME. Needs a C compiler, no CUDA.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
name=$2
cc=${CC:-cc}
mkdir -p "$out/link"
$cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/link_stub.c"
$cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread -o "$out/$name" "$here/$name.c" \
    -L"$out/link" -lcuda -ldl
