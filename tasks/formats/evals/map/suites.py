"""Which of the four suites a test belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passgate.tasks.formats.discover import SUITES, suite_of
from passgate.tasks.formats.evals.map.sources import Sources
from passgate.tasks.formats.evals.read.node import Parts
from passgate.tasks.formats.evals.read.raw import RawTest
from passgate.tasks.model.task import Suite


@dataclass(frozen=True)
class Belonging:
    """The suite of a test."""

    suite: Suite
    assumed: bool = False
    """Whether nothing names it."""


def belonging_of(
    test: Parts, raw: RawTest, metadata: Mapping[str, Any], tags: Sequence[str], sources: Sources
) -> Belonging:
    """The suite that is named by `suite`, `metadata.suite`, a tag or else the folder of the file; golden without any.

    A `suite` of any other name is the other tool's.
    """
    folder = suite_of(raw.runtime.file)
    roots = (raw.context.root.value, raw.runtime.root.value)
    names = [test.value("suite"), metadata.get("suite"), *(root.get("suite") for root in roots), *tags]
    named = next((SUITES[name] for name in names if isinstance(name, str) and name in SUITES), None)
    if named is not None and folder is not None and named is not folder and raw.context is raw.runtime:
        sources.refuse(test.node, f"the file lies in the folder of {folder!s}; move it or write `suite: {folder!s}`")
    if named is not None:
        return Belonging(named)
    return Belonging(Suite.GOLDEN, assumed=True) if folder is None else Belonging(folder)


def other_suite(test: Parts, raw: RawTest) -> str | None:
    """A suite's name that is none of the four."""
    names = (test.value("suite"), raw.context.root.value.get("suite"))
    return next((name for name in names if isinstance(name, str) and name not in SUITES), None)
