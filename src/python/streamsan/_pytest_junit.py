"""Races in the JUnit file that pytest has written (``--junit-xml``).

A test that races gets a ``failure``, as one that fails by itself; what belongs to no test gets a
test case of its own. The file has class and name of a test where pytest has an id.
"""

import os
import re
from xml.etree import ElementTree

#: The class of the cases that are no test's.
OWN = "streamsan"


def add(path, prefix, failures):
    """Adds failures to a file: ``(test or None, name of its own case, message, text)``.

    The file is the one of pytest's option; ``prefix`` is that of ``--junit-prefix``, or ``None``.
    """
    path = os.path.expanduser(os.path.expandvars(path))
    try:
        document = ElementTree.parse(path)
    except (OSError, ElementTree.ParseError):
        # pytest died before it wrote one.
        return
    suite = document.getroot().find("testsuite")
    if suite is None:
        return
    cases = {(case.get("classname"), case.get("name")): case for case in suite.iter("testcase")}
    for test, name, message, text in failures:
        key = (OWN, name) if test is None else _case(test, prefix)
        case = cases.get(key)
        if case is None:
            case = ElementTree.SubElement(
                suite, "testcase", classname=key[0], name=key[1], time="0"
            )
            cases[key] = case
            _count(suite, "tests")
        if all(case.find(outcome) is None for outcome in ("failure", "error")):
            _count(suite, "failures")
        ElementTree.SubElement(case, "failure", message=message).text = text
    document.write(path, encoding="utf-8", xml_declaration=True)


def _case(test, prefix):
    """Class and name that pytest gives to the case of a test (``_pytest/junitxml.py``)."""
    address, bracket, parameters = test.partition("[")
    names = address.split("::")
    names[0] = re.sub(r"\.py$", "", names[0].replace("/", "."))
    names[-1] += bracket + parameters
    if prefix:
        names.insert(0, prefix)
    return ".".join(names[:-1]), names[-1]


def _count(suite, outcome):
    suite.set(outcome, str(int(suite.get(outcome, "0")) + 1))
