"""Which test a call belongs to, by marks alone; which part of the report is a finding's."""

from streamsan._pytest_races import OUTSIDE, Timeline, _blocks
from streamsan._trace import Call, _fit


class Processes:
    """A trace without findings."""

    def __init__(self, processes):
        self.processes = processes


def phase(pid, test, name, begin, end=None, **more):
    marks = [{"pid": pid, "test": test, "phase": name, "begin": begin, **more}]
    if end is not None:
        marks.append({"pid": pid, "test": test, "phase": name, "end": end})
    return marks


def place(timeline, index, process=0, thread=None):
    found = timeline._place(Call(index, process, thread))
    return found.test, found.phase


def test_a_phase_has_the_calls_between_its_marks():
    marks = (
        phase(7, "a", "setup", 10, 12)
        + phase(7, "a", "call", 12, 12)
        + phase(7, "b", "call", 20, 30)
    )
    timeline = Timeline(marks, Processes({0: (7, 1)}))
    assert place(timeline, 9) == (None, None)
    assert place(timeline, 10) == ("a", "setup")
    assert place(timeline, 11) == ("a", "setup")
    # Between two tests.
    assert place(timeline, 12) == (None, None)
    assert place(timeline, 29) == ("b", "call")
    assert place(timeline, 30) == (None, None)


def test_a_process_that_died_in_a_test_ends_no_phase():
    timeline = Timeline(phase(7, "a", "call", 10), Processes({0: (7, 1)}))
    assert place(timeline, 1000) == ("a", "call")


def test_processes_are_told_apart_and_children_are_their_parents():
    marks = phase(7, "a", "call", 10, 20) + phase(8, "b", "call", 10, 20)
    # 9 is a child of 8's child 10, which made no call. 11 belongs to nobody.
    processes = {0: (7, 1), 1: (8, 1), 2: (9, 10), 3: (10, 8), 4: (11, 1)}
    timeline = Timeline(marks, Processes(processes))
    found = [place(timeline, 15, process) for process in range(5)]
    assert [test for test, _ in found] == ["a", "b", "b", "b", None]


def test_regions_are_those_of_the_thread_and_the_outermost_comes_first():
    inner = {"pid": 7, "thread": 70, "region": "inner", "begin": 12, "end": 14}
    outer = {"pid": 7, "thread": 70, "region": "outer", "begin": 12, "end": 14}
    other = {"pid": 7, "thread": 71, "region": "other", "begin": 10, "end": 20}
    marks = phase(7, "a", "call", 10, 20) + [inner, outer, other]
    timeline = Timeline(marks, Processes({0: (7, 1)}))
    words = timeline._place(Call(13, 0, 70)).words(None)
    assert words == 'in region "outer", in region "inner"'
    assert timeline._place(Call(13, 0, 72)).words(None) == ""
    outside = timeline._place(Call(30, 0, 70))
    assert outside.words("a") == OUTSIDE


def test_regions_of_a_child_process():
    region = {"pid": 8, "thread": 80, "region": "child", "begin": 12, "end": 14}
    marks = phase(7, "a", "call", 10, 20) + [region]
    found = Timeline(marks, Processes({0: (7, 1), 1: (8, 7)}))._place(Call(13, 1, 80))
    assert (found.test, found.words(None)) == ("a", 'in region "child"')


def test_names_are_printed_without_what_a_terminal_obeys():
    region = {"pid": 7, "thread": 70, "region": "a\x1b[2J\u202eb", "begin": 10, "end": 20}
    timeline = Timeline([region], Processes({0: (7, 1)}))
    words = timeline._place(Call(13, 0, 70)).words(None)
    assert words == 'in region "a\\x1b[2J\\u202eb"'


def test_the_line_in_the_test_is_told_where_the_report_does_not_have_it():
    lines = [("copy", "/x/driver.py", 5), ("helper", "/x/a/test_a.py", 6)]
    lines += [("test_a", "/x/a/test_a.py", 9), ("main", "/x/other_test_a.py", 2)]
    timeline = Timeline(phase(7, "a/test_a.py::test_a", "call", 10, 20), Processes({0: (7, 1)}))
    found = timeline._place(Call(13, 0, 70, lines))
    assert found.words(None, "  at driver.py:5 in copy\n") == "at a/test_a.py:6 in helper"
    assert found.words(None, "  at /x/a/test_a.py:6 in helper\n  why\n") == ""
    elsewhere = timeline._place(Call(13, 0, 70, lines[:1] + lines[3:]))
    assert elsewhere.words(None) == ""


def test_call_sites_are_looked_for_in_their_order():
    stack = [("copy", "x.py"), ("helper", "x.py"), ("test_a", "t.py"), ("main", "m.py")]
    assert _fit([[("copy", "x.py"), ("test_a", "t.py")]], [stack]) == 2
    assert _fit([[("test_a", "t.py"), ("copy", "x.py")]], [stack]) == 1
    assert _fit([[("test_b", "t.py")], []], [stack, stack]) == 0


def test_a_finding_has_its_paragraph_of_the_report():
    text = """\
error[missing-wait]: read-after-write race on `id aaaaaaaa`   race 1 of 2, seen once, id 0123abcd
  (1) first

error[missing-wait]: read-after-write race on 4.0 KiB of device memory
  latent 12 of 20, seen 2 times, id 4567efgh
  (1) first  race 1 of 2, seen once, id 89abcdef at the end of a name
trace: x.db

verdict: RACY
"""
    blocks = _blocks(text)
    lines = text.splitlines()
    assert blocks == {"0123abcd": lines[0:2], "4567efgh": lines[3:7]}


def test_a_headline_without_a_number_is_no_paragraph():
    assert _blocks("warning[lint]: a name, id 0123abcd\n  (1) first\n") == {}
