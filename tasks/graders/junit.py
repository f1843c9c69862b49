"""Reading the JUnit report that pytest writes."""

from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from xml.etree import ElementTree

from passgate.tasks.graders.texts import ending
from passgate.tasks.graders.workspace import UnusableFileError, read_text


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class Case(NamedTuple):
    """One test that ran."""

    file: str
    """Relative to the folder of the tests."""
    group: str
    """The classes that it lies in, joined with `::`; empty for a function of a module."""
    name: str
    """With the parameters in brackets, where it has some."""
    outcome: Outcome
    message: str

    @property
    def label(self) -> str:
        return "::".join(part for part in (self.file, self.group, self.name) if part)

    def is_called(self, wanted: str) -> bool:
        """Whether a name means this test: its file, its function, or both joined with `::`."""
        files = {self.file, PurePosixPath(self.file).name}
        functions = {self.name, self.name.partition("[")[0]}
        if self.group:
            functions |= {f"{self.group}::{function}" for function in functions}
        return wanted in files | functions | {f"{file}::{name}" for file in files for name in functions}


def read_report(folder: Path, name: str) -> tuple[Case, ...]:
    """The tests in a report of the `xunit1` family.

    Raises `UnusableFileError` when there is none, when it is too large, or is not such a report.
    """
    text = read_text(folder, name)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UnusableFileError("the report declares entities")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - without entities there is nothing to blow up
    except ElementTree.ParseError as error:
        raise UnusableFileError(f"the report is not XML: {error}") from None
    return tuple(_case(element) for element in root.iter("testcase"))


def _case(element: ElementTree.Element) -> Case:
    file = element.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    group = element.get("classname", "").removeprefix(module).strip(".").replace(".", "::")
    outcome, message = _outcome(element)
    return Case(file.removeprefix("tests/"), group, element.get("name", ""), outcome, message)


def _outcome(element: ElementTree.Element) -> tuple[Outcome, str]:
    for tag, outcome in (
        ("error", Outcome.FAILED),
        ("failure", Outcome.FAILED),
        ("skipped", Outcome.SKIPPED),
    ):
        detail = element.find(tag)
        if detail is not None:
            return outcome, _message(detail)
    return Outcome.PASSED, ""


def _message(detail: ElementTree.Element) -> str:
    message, text = detail.get("message", ""), detail.text or ""
    # For a file that cannot be imported the message says no more than that, the text says why.
    return ending(text) if message in {"", "collection failure", "internal error"} else message
