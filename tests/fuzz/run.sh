#!/usr/bin/env bash
# Runs the fuzz targets under libFuzzer, one after the other, and prints what came of it.
#
#   tests/fuzz/run.sh [AMOUNT] [TARGET...]
#
# AMOUNT is seconds a target (60s, the default) or executions a target (1000000). What reaches new
# code is kept in target/fuzz/corpus, what fails in target/fuzz/failures. The exit code is 1 where
# anything failed. Needs a stable toolchain and a C++ compiler; no file of NVIDIA's is read.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
amount=${1:-60s}
if [ $# -gt 0 ]; then shift; fi
case $amount in
*s) bound=-max_total_time=${amount%s} ;;
*) bound=-runs=$amount ;;
esac

# What cargo-fuzz passes, less its sanitizer: all but `unsafe` code is checked by the language.
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares)
host=$(rustc -vV | sed -n 's/^host: //p')
(
    cd tests/fuzz/coverage
    # The libraries as the project builds them; cargo adds what libFuzzer needs.
    cp "$root/Cargo.lock" Cargo.lock
    RUSTFLAGS="${coverage[*]}" CARGO_TARGET_DIR=$root/target/fuzz CARGO_INCREMENTAL=0 \
        cargo build --release --target "$host"
)
fuzz=$root/target/fuzz/$host/release/fuzz

failed=0
printf '%-14s %12s %8s %9s %8s %6s\n' target executions per-s coverage crashes hangs
while read -r target longest; do
    if [ $# -gt 0 ] && [[ " $* " != *" $target "* ]]; then continue; fi
    corpus=target/fuzz/corpus/$target
    failures=target/fuzz/failures/$target
    mkdir -p "$corpus" "$failures"
    export STREAMSAN_FUZZ_TARGET=$target
    STREAMSAN_FUZZ_SEEDS=$corpus "$fuzz" >"$failures/log" 2>&1
    code=0
    "$fuzz" "$corpus" "$bound" -max_len="$longest" -timeout=5 -malloc_limit_mb=512 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$failures/" \
        >"$failures/log" 2>&1 || code=$?
    stat() { sed -n "s/^stat::$1: *//p" "$failures/log" | tail -1; }
    # A target that fails with its first input reaches nothing: the cell stays empty.
    reached=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$failures/log" | tail -1)
    crashes=$(find "$failures" -name 'crash-*' -o -name 'oom-*' -o -name 'leak-*' | wc -l)
    hangs=$(find "$failures" -name 'timeout-*' | wc -l)
    printf '%-14s %12s %8s %9s %8s %6s\n' "$target" "$(stat number_of_executed_units)" \
        "$(stat average_exec_per_sec)" "$reached" "$crashes" "$hangs"
    if [ "$code" != 0 ] || [ "$crashes" != 0 ] || [ "$hangs" != 0 ]; then
        failed=1
        echo "  see $failures (log, and one file an input)"
    fi
done < <(STREAMSAN_FUZZ_LIST=1 "$fuzz" 2>/dev/null)
exit $failed
