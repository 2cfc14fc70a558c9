#!/bin/sh
# Builds one of the C programs here: build.sh FOLDER NAME. Needs a C compiler, no CUDA.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
name=$2
cc=${CC:-cc}
mkdir -p "$out/link"
# A library whose name is NCCL's, for memory that such libraries allocate.
$cc -shared -fPIC -O1 -g -Wl,-soname,libnccl.so.2 -o "$out/libnccl.so.2" "$here/library.c"
$cc -shared -fPIC -O1 -g -Wl,-soname,libibverbs.so.1 -o "$out/libibverbs.so.1" "$here/verbs.c"
$cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/link_stub.c"
$cc -std=gnu11 -O1 -g -Wall -Wextra -Werror -pthread \
    -DLIBRARY="\"$out/libnccl.so.2\"" -DVERBS="\"$out/libibverbs.so.1\"" -o "$out/$name" "$here/$name.c" \
    -L"$out/link" -lcuda -ldl
