#!/bin/sh
# Runs on a machine with a real GPU, by hand: run.sh STREAMSAN PROGRAMS OUT
#   STREAMSAN  the command, built elsewhere (cargo build --release --bin streamsan)
#   PROGRAMS   the folder of the executable `programs` (cargo build --release -p streamsan-tests)
#   OUT        where results go: results.tsv, stats.txt, log.txt and at most five traces
# Needs nvcc and a python3 with PyTorch, Triton, CuPy and JAX; what is missing is a FAIL.
# Prints a table of PASS and FAIL; exit code 1 when there is a FAIL.
set -u
[ $# -eq 3 ] || { echo "usage: $0 STREAMSAN PROGRAMS OUT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
streamsan=$(realpath "$1")
programs=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$out/results.tsv
stats=$out/stats.txt
log=$out/log.txt
: >"$results"
: >"$stats"
"$streamsan" doctor >"$log" 2>&1

result() { # VERDICT WHAT WHY
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" | tee -a "$results"
}

# The programs of the table. Their traces are small; they are not kept.
python3 "$here/compare_programs.py" "$streamsan" "$here/../programs/expected.tsv" "$programs" \
    "$work" 2>>"$log" | tee -a "$results"
grep -q 'PASS' "$results" || result FAIL "programs of the table" "none ran, see log.txt"

# A program of the world: the same output and exit code with streamsan and without, and statistics
# that show launches, copies, streams and events.
compare() { # NAME COMMAND...
    name=$1
    shift
    "$@" >"$work/alone.out" 2>"$work/alone.err"
    alone=$?
    "$streamsan" run --allow-incomplete -o "$work/$name.db" -- "$@" \
        >"$work/wrapped.out" 2>"$work/wrapped.err"
    wrapped=$?
    { echo "== $name: alone $alone, wrapped $wrapped"; cat "$work/alone.err"; echo "-- wrapped:"
      cat "$work/wrapped.out" "$work/wrapped.err"; } >>"$log"
    { echo "== $name"; "$streamsan" stats "$work/$name.db"; echo; } >>"$stats" 2>&1
    if ! cmp -s "$work/alone.out" "$work/wrapped.out"; then
        result FAIL "$name" "another standard output, see log.txt"
    elif [ ! -s "$work/alone.out" ]; then
        result FAIL "$name" "printed nothing even alone, see log.txt"
    elif [ "$wrapped" -ne "$alone" ] && [ "$wrapped" -ne 66 ]; then
        result FAIL "$name" "exit code $wrapped instead of $alone, see log.txt"
    elif ! "$streamsan" stats "$work/$name.db" >/dev/null 2>&1; then
        result FAIL "$name" "no statistics of its trace"
    elif [ "$wrapped" -eq 66 ] && [ "$alone" -ne 66 ]; then
        result FAIL "$name" "called RACY, see log.txt"
    else
        result PASS "$name" "exit code $wrapped"
    fi
    if [ -f "$work/$name.db" ] && [ "$(stat -c %s "$work/$name.db")" -lt 16000000 ]; then
        cp "$work/$name.db" "$out/$name.db"
    fi
}

if nvcc -o "$work/two_streams" "$here/programs/two_streams.cu" >>"$log" 2>&1; then
    compare nvcc_static_cudart "$work/two_streams"
else
    result FAIL nvcc_static_cudart "nvcc does not build it, see log.txt"
fi
compare pytorch python3 "$here/programs/torch_training.py"
compare torch_graph python3 "$here/programs/torch_graph.py"
compare torch_mapped env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python3 "$here/programs/torch_training.py"
compare triton python3 "$here/programs/triton_add.py"
compare cupy python3 "$here/programs/cupy_streams.py"
compare jax python3 "$here/programs/jax_steps.py"

# Ranks: a streamsan and a trace for each, and one report over all.
torchrun=$(command -v torchrun || echo "python3 -m torch.distributed.run")
mkdir -p "$work/ranks"
# shellcheck disable=SC2086
$torchrun --no-python --nproc-per-node 2 "$streamsan" run --exit-as-program -o "$work/ranks/rank-%q{RANK}.db" \
    -- python3 "$here/programs/torch_unordered.py" >>"$log" 2>&1
"$streamsan" check "$work/ranks" >"$work/ranks.txt" 2>&1
code=$?
cat "$work/ranks.txt" >>"$log"
[ $code -eq 1 ] && grep -q "in 2 of 2 traces" "$work/ranks.txt" && result PASS torchrun "two ranks" \
    || result FAIL torchrun "exit code $code, see log.txt"

# Ranks over NCCL, with one streamsan over all: each kind and the exit code of its verdict. Kernels of
# fsdp2 follow pointers in memory, so its clean twin is incomplete.
for ranks in 1 2 4; do
    [ "$ranks" -le "$(nvidia-smi -L | wc -l)" ] || continue
    for kind in ddp fsdp2 tensor_parallel send_recv; do
        for variant in clean=0 racy=66; do
            # shellcheck disable=SC2086
            "$streamsan" run --allow-incomplete -o "$work/nccl.db" -- $torchrun --standalone \
                --nproc-per-node "$ranks" "$here/programs/torch_ranks.py" "$kind" "${variant%=*}" \
                >>"$log" 2>&1
            code=$?
            what="$kind, $ranks ranks, ${variant%=*}"
            [ $code -eq "${variant#*=}" ] && result PASS "$what" "" \
                || result FAIL "$what" "exit code $code instead of ${variant#*=}"
        done
    done
done

# The demo, on the real driver.
"$streamsan" demo -o "$work/demo.db" >>"$log" 2>&1
code=$?
[ $code -eq 66 ] && result PASS demo "" || result FAIL demo "exit code $code instead of 66"
"$streamsan" demo --clean -o "$work/demo-clean.db" >>"$log" 2>&1
code=$?
[ $code -eq 0 ] && result PASS "demo --clean" "" || result FAIL "demo --clean" "exit code $code"

# Streams under capture: each variant and the exit code of its verdict.
if ${CC:-cc} -std=gnu11 -O1 -o "$work/capture" "$here/programs/capture.c" -ldl >>"$log" 2>&1; then
    for variant in captured=0 released=66 unjoined=66 launched=0; do
        "$streamsan" run -o "$work/capture.db" -- "$work/capture" "${variant%=*}" >>"$log" 2>&1
        code=$?
        [ $code -eq "${variant#*=}" ] && result PASS "capture ${variant%=*}" "" \
            || result FAIL "capture ${variant%=*}" "exit code $code instead of ${variant#*=}"
    done
else
    result FAIL capture "the C compiler does not build it, see log.txt"
fi

# Graphs that are decided by their kernels: each variant and the exit code of its verdict.
decided() { # NAME EXPECTED COMMAND...
    name=$1
    expected=$2
    shift 2
    "$streamsan" run -o "$work/decided.db" -- "$@" >"$work/decided.txt" 2>&1
    code=$?
    { echo "== $name: $code"; cat "$work/decided.txt"; } >>"$log"
    [ $code -eq "$expected" ] && result PASS "$name" "" \
        || result FAIL "$name" "exit code $code instead of $expected, see log.txt"
    # A node whose kernel is not known may touch anything.
    if "$streamsan" stats "$work/decided.db" 2>>"$log" | grep -qE "code not read|nothing seen"; then
        result FAIL "$name" "a kernel's code was not read"
    fi
}
if nvcc -std=c++17 -o "$work/graph_kernels" "$here/programs/graph_kernels.cu" >>"$log" 2>&1; then
    for kind in branches input output hand set update child cloned conditional packed; do
        clean=clean
        [ $kind = branches ] && clean=joined
        decided "graph_kernels ${kind}_racy" 66 "$work/graph_kernels" "${kind}_racy"
        decided "graph_kernels ${kind}_$clean" 0 "$work/graph_kernels" "${kind}_$clean"
    done
else
    result FAIL graph_kernels "nvcc does not build it, see log.txt"
fi
for variant in branches_racy=66 branches_joined=0 input_racy=66 input_clean=0 output_racy=66 \
    output_clean=0 compiled=0; do
    decided "torch_graph_kernels ${variant%=*}" "${variant#*=}" \
        python3 "$here/programs/torch_graph_kernels.py" "${variant%=*}"
done

# Programmatic dependent launch: each variant and the exit code of its verdict, in streams and captured.
if nvcc -std=c++17 -arch=sm_90 -o "$work/programmatic" "$here/programs/programmatic.cu" \
    >>"$log" 2>&1; then
    for variant in weights=0 warp=0 early-weights=66 no-wait=66 overwrite=0 overwrite-triggered=66 \
        chain=0 chain-early=66 event=0 event-no-wait=66 event-block-start=0 event-early=66 \
        event-read=0 event-read-triggered=66 record-between=66 wait-between=0; do
        for how in "" -captured; do
            name=${variant%=*}$how
            "$streamsan" run -o "$work/programmatic.db" -- "$work/programmatic" "$name" \
                >>"$log" 2>&1
            code=$?
            [ $code -eq "${variant#*=}" ] && result PASS "programmatic $name" "" \
                || result FAIL "programmatic $name" "exit code $code instead of ${variant#*=}"
        done
    done
else
    result FAIL programmatic "nvcc does not build it, see log.txt"
fi

# Two devices, where there are two: each variant and the exit code of its verdict.
if [ "$(nvidia-smi -L | wc -l)" -lt 2 ]; then
    echo "one device only: peer copies were not run" >>"$log"
elif ${CC:-cc} -std=gnu11 -O1 -o "$work/peer" "$here/programs/peer.c" -ldl >>"$log" 2>&1; then
    for variant in racy=66 waited=0 blocking=0 exempt=66; do
        "$streamsan" run --fail-on latent -o "$work/peer.db" -- "$work/peer" "${variant%=*}" \
            >>"$log" 2>&1
        code=$?
        [ $code -eq "${variant#*=}" ] && result PASS "peer ${variant%=*}" "" \
            || result FAIL "peer ${variant%=*}" "exit code $code instead of ${variant#*=}"
    done
else
    result FAIL peer "the C compiler does not build it, see log.txt"
fi

! grep -q '^FAIL' "$results"
