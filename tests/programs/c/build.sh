#!/bin/sh
# Builds the C programs here: build.sh FOLDER [NAME]. Needs a C compiler, no CUDA.
# CFLAGS are options for all of them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=$1
only=${2-}
mkdir -p "$out/link"

compile() {
    # shellcheck disable=SC2086
    ${CC:-cc} -std=gnu11 -O1 -Wall -Wextra -Werror ${CFLAGS-} -o "$out/$1" "$here/$name.c" $2
}

${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$out/link/libcuda.so" "$here/link_stub.c"
for source in "$here"/*.c; do
    name=$(basename "$source" .c)
    [ -z "$only" ] || [ "$only" = "$name" ] || continue
    case $name in
        link_stub) ;;
        calls_nothing)
            compile "$name" ""
            compile "${name}_static" "-static" ;;
        dlopen_deepbind)
            compile "$name" "-ldl" ;;
        slow_to_load)
            ${CC:-cc} -shared -fPIC -DLIBRARY -o "$out/lib$name.so" "$here/$name.c"
            compile "$name" "-L$out/link -lcuda -L$out -l$name -Wl,-rpath,\$ORIGIN" ;;
        *)
            compile "$name" "-pthread -L$out/link -lcuda" ;;
    esac
done
