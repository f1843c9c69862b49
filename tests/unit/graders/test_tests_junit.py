from pathlib import Path

import pytest

from passgate.tasks.graders.tests import Case, CaseStatus, read_report
from passgate.tasks.graders.workspace import UnusableFileError

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite>
<testcase classname="tests.sub.test_a.TestOne" name="test_x[1]" file="tests/sub/test_a.py"/>
<testcase classname="tests.test_b" name="test_y" file="tests/test_b.py">
<failure message="it fails">at</failure></testcase>
<testcase classname="tests.test_b" name="test_z" file="tests/test_b.py">
<skipped type="pytest.skip" message="no"/></testcase>
<testcase classname="" name="tests.test_c" file="tests/test_c.py">
<error message="collection failure">why</error></testcase>
</testsuite></testsuites>
"""


def test_a_report(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_report(tmp_path, "report.xml") == (
        Case("sub/test_a.py", "TestOne", "test_x[1]", CaseStatus.PASSED, ""),
        Case("test_b.py", "", "test_y", CaseStatus.FAILED, "it fails"),
        Case("test_b.py", "", "test_z", CaseStatus.SKIPPED, "no"),
        Case("test_c.py", "", "tests.test_c", CaseStatus.FAILED, "why"),
    )


@pytest.mark.parametrize(
    ("name", "is_called"),
    [
        ("test_x", True),
        ("test_x[1]", True),
        ("test_x[2]", False),
        ("test_a.py", True),
        ("sub/test_a.py", True),
        ("test_a.py::test_x", True),
        ("sub/test_a.py::TestOne::test_x[1]", True),
        ("TestOne::test_x", True),
        ("TestTwo::test_x", False),
        ("test_b.py::test_x", False),
        ("test", False),
        ("", False),
    ],
)
def test_the_names_of_a_test(name: str, is_called: bool) -> None:
    case = Case("sub/test_a.py", "TestOne", "test_x[1]", CaseStatus.PASSED, "")
    assert case.is_called(name) is is_called


ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><testsuites>&b;</testsuites>'


@pytest.mark.parametrize(
    "content",
    [
        ENTITIES.encode(),
        b'<?xml version="1.0" encoding="utf-7"?>+ADwAIQ-DOCTYPE x+AD4-<testsuites/>',
        ENTITIES.encode("utf-16"),
        b"<testsuites>",
        b"",
        b"\xff",
        b" " * 10_000_001,
    ],
    ids=["entities", "utf_7", "utf_16", "torn", "empty", "binary", "large"],
)
def test_what_is_no_report_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_bytes(content)
    with pytest.raises(UnusableFileError):
        read_report(tmp_path, "report.xml")
