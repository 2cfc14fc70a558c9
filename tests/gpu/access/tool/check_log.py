"""Compares a log of the measuring tool with what its test program said: check_log.py EXPECTED LOG"""

import json
import sys


def runs(entry):
    """The bytes of a list of [start, length, pitch, count] as a set of addresses."""
    return {
        start + pitch * at + byte
        for start, length, pitch, count in entry
        for at in range(count)
        for byte in range(length)
    }


def main():
    expected = [json.loads(line) for line in open(sys.argv[1])]
    log = [json.loads(line) for line in open(sys.argv[2])]
    launches = [line for line in log if "ordinal" in line]
    problems = [line["problem"] for line in log if "problem" in line]
    for problem in problems:
        print(f"FAIL\tthe tool\t{problem}")
    failed = [line["name"] for line in launches] != [line["name"] for line in expected]
    print(f"{'FAIL' if failed else 'PASS'}\tlaunches\t{[line['name'] for line in launches]}")
    for wanted, got in zip(expected, launches):
        for kind in ("read", "write", "atomic", "unseen"):
            want, have = runs(wanted.get(kind, [])), runs(got.get(kind, []))
            if want != have:
                failed = True
                print(
                    f"FAIL\t{wanted['name']} {kind}\t{len(want - have)} bytes not seen,"
                    f" {len(have - want)} too many: {wanted.get(kind)} {got.get(kind)}"
                )
            elif want:
                print(f"PASS\t{wanted['name']} {kind}\t{len(want)} bytes")
        for count in ("lost", "unknown_tensor_loads"):
            if got.get(count):
                failed = True
                print(f"FAIL\t{wanted['name']}\t{count}: {got[count]}")
    return 1 if failed or problems else 0


sys.exit(main())
