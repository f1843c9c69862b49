"""Eval files of every dialect: from a file to its tasks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.evals.compose import raw_tests
from passgate.tasks.formats.evals.documents import Ground, find_ground, full_id
from passgate.tasks.formats.evals.messages import Variables
from passgate.tasks.formats.evals.node import Complaints
from passgate.tasks.formats.evals.tests import ReadTest, read_test, suite_wide
from passgate.tasks.formats.evals.words import Sources
from passgate.tasks.formats.normalise import Loaded, Origin, normalise
from passgate.tasks.formats.rules import policy_findings
from passgate.tasks.model.policy import Policy

Shown = Callable[[Path], str]  # a file's name as users know it


@dataclass(frozen=True)
class EvalTests:
    """The tests of an eval file, and what there is to say of it."""

    tests: tuple[tuple[ReadTest, Origin], ...]
    complaints: Complaints
    ground: Ground


class EvalReader:
    """Reads eval files of one suites folder under one policy."""

    def __init__(self, suites_folder: Path, policy: Policy, environment: Mapping[str, str], shown: Shown) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._environment = environment
        self._shown = shown
        self._digests = FileDigests(self._suites_folder)

    def read(self, file: Path) -> Loaded:
        """Return the tests of an eval file as the pipeline uses them, and everything that is wrong with it."""
        found = self.tests(file)
        return Loaded(
            tasks=tuple(
                normalise(test.task, test.messages, origin, self._policy, self._digests) for test, origin in found.tests
            ),
            problems=tuple(dict.fromkeys(found.complaints.problems)),
            warnings=tuple(dict.fromkeys(found.complaints.warnings)),
            cannot_run=tuple(dict.fromkeys(found.complaints.cannot_run)),
            files=1,
            outside=found.ground.looked_at_outside(),
        )

    def tests(self, file: Path) -> EvalTests:
        """Return the tests of an eval file, each as a task file has it."""
        ground, complaints = find_ground(file, self._suites_folder), Complaints()
        texts: dict[Path, str | ValueError] = {}
        # Where the tests stand, by their ids and prompts: each prompt of a file has tests of the same ids.
        places: dict[tuple[str, str | None], Problem] = {}
        found: list[tuple[ReadTest, Origin]] = []
        for raw in raw_tests(file, ground, complaints, environment=self._environment, shown=self._shown):
            own = Complaints()
            if raw.runtime is not raw.context:
                suite_wide(raw.runtime, Variables({}), Sources(raw.runtime.documents, own, texts))
            test = read_test(raw, Sources(raw.context.documents, own, texts))
            if test is None:
                complaints.add(own)
                continue
            test_id = test.task.task_id
            place = raw.node.problem("")
            first = places.setdefault((test_id, raw.prompt_label), place)
            if first is not place:
                message = f"the test {test_id!r} has the id of the one in {first.file}:{first.line}"
                own.problems.append(raw.node.problem(message))
            own.problems += [raw.node.problem(message) for _, message in policy_findings(test.task, self._policy)]
            complaints.add(own)
            if not own.problems:
                full = full_id(test_id, raw.runtime.file, ground, raw.prompt_label)
                reasons = tuple(dict.fromkeys(map(str, own.cannot_run)))
                found.append((test, Origin(full, place.file, place.line, test.suite_assumed, reasons)))
        return EvalTests(tuple(found), complaints, ground)
