"""Tests of compare.py on made-up traces and logs; needs NumPy but no GPU: python3 test_compare.py"""

import contextlib
import io
import json
import pathlib
import sqlite3
import sys
import tempfile
import unittest
from unittest import mock

import compare

SCHEMA = """
CREATE TABLE string (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE enumeration (name TEXT, code INTEGER, word TEXT);
CREATE TABLE process (id INTEGER, pid INTEGER);
CREATE TABLE allocation (id INTEGER, process INTEGER, kind INTEGER, start INTEGER, length INTEGER);
CREATE TABLE kernel (id INTEGER, name INTEGER);
CREATE TABLE op (g INTEGER, action INTEGER, process INTEGER, kernel INTEGER, result INTEGER);
CREATE TABLE access (id INTEGER, allocation INTEGER, start INTEGER, length INTEGER, mode INTEGER,
    basis INTEGER, pattern INTEGER);
CREATE TABLE access_pattern (id INTEGER, width INTEGER, pitch INTEGER, rows INTEGER,
    slice_pitch INTEGER, slices INTEGER);
CREATE TABLE coverage (kind INTEGER, name INTEGER, count INTEGER);
CREATE TABLE kernel_code (kernel INTEGER, source INTEGER, reason INTEGER);
CREATE TABLE kernel_word (kernel INTEGER, mode INTEGER);
INSERT INTO process VALUES (0, 77);
INSERT INTO enumeration VALUES ('code source', 2, 'machine code'),
    ('coverage', 12, 'incomplete: pointers in memory followed');
-- The allocation 0x1000..0x2000 lives from operation 1 to 900, 0x5000..0x6000 to operation 5.
INSERT INTO allocation VALUES (0, 0, 0, 4096, 4096), (1, 0, 0, 20480, 4096), (2, 0, 6, 8192, 64);
INSERT INTO access VALUES (1 << 24, 0, 4096, 4096, 5, 3, NULL), (900 << 24, 0, 4096, 4096, 6, 3, NULL),
    (2 << 24, 1, 20480, 4096, 5, 3, NULL), (5 << 24, 1, 20480, 4096, 6, 3, NULL);
-- Four rows of 16 bytes at a pitch of 64, twice at a distance of 1024.
INSERT INTO access_pattern VALUES (0, 16, 64, 4, 1024, 2);
"""
R, W, RW, A, ANY = range(5)


def entry(name, ordinal=0, **touched):
    line = {"ordinal": ordinal, "name": name, "lost": 0, "unknown_tensor_loads": 0}
    return {**line, "read": [], "write": [], "atomic": [], **touched}


# What is concluded (start, length, mode, basis, pattern), what was touched, and the standing.
CASES = {
    "covered": ([(4096, 100, R, 2, None)], {"read": [[4096, 100, 0, 1]]}, "sound"),
    "read beyond": ([(4096, 100, R, 2, None)], {"read": [[4096, 101, 0, 1]]}, "unsound"),
    "read before": ([(4100, 100, R, 2, None)], {"read": [[4099, 1, 0, 1]]}, "unsound"),
    "nothing concluded": ([], {"write": [[5000, 1, 0, 1]]}, "unsound"),
    "written, only read": ([(4096, 100, R, 2, None)], {"write": [[4096, 1, 0, 1]]}, "unsound"),
    "read, only written": ([(4096, 100, W, 2, None)], {"read": [[4096, 1, 0, 1]]}, "unsound"),
    "atomic, only written": ([(4096, 100, W, 2, None)], {"atomic": [[4096, 4, 0, 1]]}, "unsound"),
    "atomic": ([(4096, 100, A, 2, None)], {"atomic": [[4096, 4, 0, 1]]}, "sound"),
    "read and written": (
        [(4096, 64, R, 2, None), (4128, 64, W, 2, None)],
        {"read": [[4096, 64, 0, 1]], "write": [[4128, 64, 0, 1]]},
        "sound",
    ),
    "anything": ([(4096, 4096, ANY, 0, None)], {"atomic": [[4096, 4, 128, 30]]}, "sound"),
    "two that touch": (
        [(4096, 50, R, 2, None), (4146, 50, R, 2, None)],
        {"read": [[4096, 100, 0, 1]]},
        "sound",
    ),
    "a hole": (
        [(4096, 50, R, 2, None), (4147, 50, R, 2, None)],
        {"read": [[4096, 100, 0, 1]]},
        "unsound",
    ),
    "rows": ([(4096, 1232, W, 2, 0)], {"write": [[4096, 16, 64, 4], [5120, 16, 64, 4]]}, "sound"),
    "a row too many": ([(4096, 1232, W, 2, 0)], {"write": [[4096, 16, 64, 5]]}, "unsound"),
    "between rows": ([(4096, 1232, W, 2, 0)], {"write": [[4096, 17, 64, 4]]}, "unsound"),
    "no known memory": ([], {"write": [[1 << 30, 64, 0, 1]]}, "sound"),
    "freed memory": ([], {"write": [[20480, 64, 0, 1]]}, "sound"),
    "a module's variable": ([], {"write": [[8192, 64, 0, 1]]}, "sound"),
    "seen to change": (
        [(4096, 100, R, 2, None)],
        {"unseen": [[4096, 1, 0, 1]]},
        "unsound",
    ),
    "loads not resolved": ([(4096, 9, R, 2, None)], {"unknown_tensor_loads": 3}, "seen in part"),
    "accesses lost": ([(4096, 9, R, 2, None)], {"lost": 1}, "seen in part"),
    "follows pointers": ([], {"read": [[4096, 8, 0, 1]]}, "declared"),
}


class Compared(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.db = sqlite3.connect(self.folder / "trace.db")
        self.db.executescript(SCHEMA)
        self.strings = {}
        self.g = 10
        self.lines = [{"pid": 77}]

    def string(self, value):
        if value not in self.strings:
            self.strings[value] = len(self.strings)
            self.db.execute("INSERT INTO string VALUES (?, ?)", (self.strings[value], value))
            self.db.execute("INSERT INTO kernel VALUES (?, ?)", (self.strings[value],) * 2)
        return self.strings[value]

    def launch(self, name, accesses=(), result=0):
        kernel = self.string(name)
        self.g += 1
        self.db.execute("INSERT INTO op VALUES (?, 19, 0, ?, ?)", (self.g, kernel, result))
        for at, (start, length, mode, basis, pattern) in enumerate(accesses):
            row = ((self.g << 24) + at, 0, start, length, mode, basis, pattern)
            self.db.execute("INSERT INTO access VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def code(self, name, modes, source=2):
        kernel = self.string(name)
        self.db.execute("INSERT INTO kernel_code VALUES (?, ?, NULL)", (kernel, source))
        self.db.executemany("INSERT INTO kernel_word VALUES (?, ?)", [(kernel, m) for m in modes])

    def check(self):
        self.db.commit()
        log = self.folder / "log"
        log.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return compare.check_program(self.folder / "trace.db", log)

    def main(self):
        """Exit code and output of the command."""
        self.check()
        program = f"p={self.folder}/trace.db,{self.folder}/log"
        said = io.StringIO()
        with mock.patch.object(sys, "argv", ["compare.py", str(self.folder / "out"), program]):
            with contextlib.redirect_stdout(said):
                code = compare.main()
        return code, said.getvalue()

    def test_each_case_has_its_standing(self):
        follows = self.string("follows pointers")
        self.db.execute("INSERT INTO coverage VALUES (12, ?, 1)", (follows,))
        for at, (name, (accesses, touched, _)) in enumerate(CASES.items()):
            self.launch(name, accesses)
            self.lines.append(entry(name, at, **touched))
        kernels, problems, why = self.check()
        self.assertEqual((problems, why), ([], None))
        for name, (_, _, standing) in CASES.items():
            with self.subTest(name):
                self.assertEqual(kernels[name].standing, standing, kernels[name].first_violation)

    def test_ranges_are_exact_or_not(self):
        accesses = [(4096, 64, R, 2, None), (4160, 64, W, 1, None), (4224, 64, ANY, 0, None)]
        self.launch("k", accesses)
        self.lines.append(
            entry("k", read=[[4096, 4, 60, 2], [4224, 64, 0, 1]], write=[[4160, 32, 0, 1]])
        )
        kernel = self.check()[0]["k"]
        self.assertEqual((kernel.accesses, kernel.inferred), (3, 1))
        self.assertEqual((kernel.comparable, kernel.exact, kernel.needless), (3, 2, 1))
        self.assertEqual((kernel.touched, kernel.concluded), (8 + 32 + 64, 192))

    def test_a_launch_that_is_missing_fails(self):
        self.launch("k")
        self.launch("k", result=1)
        self.lines += [entry("k"), entry("k", 1)]
        code, said = self.main()
        self.assertEqual(code, 1)
        self.assertIn("launches are not paired", said)

    def test_other_orders_are_paired_by_name(self):
        self.launch("a", [(4096, 8, R, 2, None)])
        self.launch("b", [(4104, 8, R, 2, None)])
        self.lines.append(entry("b", read=[[4104, 8, 0, 1]]))
        self.lines.append(entry("a", 1, read=[[4096, 8, 0, 1]]))
        kernels, _, why = self.check()
        self.assertIsNone(why)
        self.assertEqual([k.standing for k in kernels.values()], ["sound", "sound"])

    def test_launches_that_were_not_measured_only_count(self):
        self.launch("k")
        self.lines.append({"ordinal": 0, "name": "k"})
        kernel = self.check()[0]["k"]
        self.assertEqual((kernel.launches, kernel.measured), (1, 0))
        self.assertEqual(kernel.standing, "not measured")

    def test_known_modes_pass_and_unknown_ones_fail(self):
        for modes, passes in (([R, W, None] * 20, True), ([R] * 49 + [ANY], True), ([R, ANY], False)):
            with self.subTest(modes):
                self.setUp()
                self.launch("k", [(4096, 8, R, 2, None)])
                self.lines.append(entry("k", read=[[4096, 8, 0, 1]]))
                self.code("k", modes)
                code, said = self.main()
                self.assertEqual(code, 0 if passes else 1, said)
                self.assertTrue(said.startswith("PASS" if passes else "FAIL"), said)

    def test_words_of_kernels_that_nobody_read_are_unknown(self):
        self.launch("k", [(4096, 8, ANY, 0, None), (4200, 8, ANY, 0, None)])
        self.lines.append(entry("k"))
        kernel = self.check()[0]["k"]
        self.assertEqual((kernel.words, kernel.known), (2, 0))

    def test_what_is_missed_fails_and_is_written_down(self):
        self.launch("k", [(4096, 8, R, 2, None)])
        self.lines.append(entry("k", read=[[4096, 9, 0, 1]]))
        self.code("k", [R])
        code, said = self.main()
        self.assertEqual(code, 1)
        self.assertIn("1 kernels touched more than concluded", said)
        written = (self.folder / "out" / "violations.txt").read_text()
        self.assertIn("1 of 9 bytes read in 1 ranges are not concluded, first 0x1008..0x1009", written)
        row = (self.folder / "out" / "table.md").read_text().splitlines()[2]
        self.assertEqual(row.split(" | ")[10], "1")


if __name__ == "__main__":
    unittest.main()
