#!/bin/sh
# Builds every C program here into the folder given: build.sh FOLDER. Needs a C compiler, no CUDA.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
cc=${CC:-cc}
mkdir -p "$out/link"
"$cc" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/link_stub.c"
for source in "$here"/*.c; do
    name=$(basename "$source" .c)
    case $name in
        link_stub) ;;
        calls_nothing)
            "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -o "$out/$name" "$source"
            "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -static -o "$out/${name}_static" "$source" ;;
        dlopen_deepbind)
            "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -o "$out/$name" "$source" -ldl ;;
        *)
            "$cc" -std=gnu11 -O1 -Wall -Wextra -Werror -pthread -o "$out/$name" "$source" \
                -L"$out/link" -lcuda ;;
    esac
done
