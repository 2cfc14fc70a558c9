#!/bin/sh
# Builds one of the C programs here: build.sh FOLDER NAME STUB, where STUB is the library that
# instrumented programs are linked with. Needs a C compiler that knows -fsanitize=thread, no CUDA.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
name=$2
stub=$3
cc=${CC:-cc}
flags="-std=gnu11 -O1 -Wall -Wextra -Werror -pthread -I$here/../../../src/annotate/include"
mkdir -p "$out/link"
$cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/link_stub.c"
libraries="-L$out/link -lcuda -ldl"
case $name in
    instrumented_*)
        # shellcheck disable=SC2086
        $cc $flags -fsanitize=thread -c -o "$out/$name.o" "$here/$name.c"
        # shellcheck disable=SC2086
        $cc -pthread -o "$out/$name" "$out/$name.o" "$stub" $libraries
        ;;
    file_*)
        $cc -shared -fPIC -Wl,-soname,libcufile.so.0 -o "$out/libcufile.so.0" "$here/fake_cufile.c"
        # shellcheck disable=SC2086
        $cc $flags -o "$out/$name" "$here/$name.c" -Wl,-rpath,"$out" "$out/libcufile.so.0" $libraries
        ;;
    nccl_*)
        # shellcheck disable=SC2086
        $cc $flags -shared -fPIC -Wl,-soname,libnccl.so.2 -o "$out/libnccl.so.2" \
            "$here/fake_nccl.c" $libraries
        # shellcheck disable=SC2086
        $cc $flags -o "$out/$name" "$here/$name.c" -Wl,-rpath,"$out" "$out/libnccl.so.2" $libraries
        ;;
    *)
        # shellcheck disable=SC2086
        $cc $flags -o "$out/$name" "$here/$name.c" $libraries
        ;;
esac
