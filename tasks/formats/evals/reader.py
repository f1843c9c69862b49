"""Eval files of every dialect: from a file to its tasks."""

from collections.abc import Callable, Mapping
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.evals.compose import raw_tests
from passgate.tasks.formats.evals.documents import Documents, find_ground, full_id
from passgate.tasks.formats.evals.messages import Variables
from passgate.tasks.formats.evals.node import Complaints
from passgate.tasks.formats.evals.tests import ReadTest, read_test, suite_wide
from passgate.tasks.formats.evals.words import Sources
from passgate.tasks.formats.four_suite import Loaded, Origin, normalise
from passgate.tasks.formats.rules import policy_findings
from passgate.tasks.model.policy import Policy


class EvalReader:
    """Reads eval files of one suites folder under one policy. `shown` gives a file's name as users know it."""

    def __init__(
        self, suites_folder: Path, policy: Policy, environment: Mapping[str, str], shown: Callable[[Path], str]
    ) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._environment = environment
        self._shown = shown
        self._digests = FileDigests(self._suites_folder)

    def read(self, file: Path) -> Loaded:
        """Return the tests of an eval file as the pipeline uses them, and everything that is wrong with it."""
        tests, documents = self.tests(file)
        complaints = documents.complaints
        return Loaded(
            tasks=tuple(
                normalise(test.task, test.messages, origin, self._policy, self._digests) for test, origin in tests
            ),
            problems=tuple(dict.fromkeys(complaints.problems)),
            warnings=tuple(dict.fromkeys(complaints.warnings)),
            cannot_run=tuple(dict.fromkeys(complaints.cannot_run)),
            files=1,
            outside=documents.ground.looked_at_outside(),
        )

    def tests(self, file: Path) -> tuple[list[tuple[ReadTest, Origin]], Documents]:
        """Return the tests of an eval file, each as a task file has it, and its documents with all complaints."""
        ground, complaints = find_ground(file, self._suites_folder), Complaints()
        documents = Documents(ground, complaints, self._environment, self._shown)
        texts: dict[Path, str | ValueError] = {}
        # Where the tests stand, by their ids and prompts: each prompt of a file has tests of the same ids.
        places: dict[tuple[str, str | None], Problem] = {}
        found: list[tuple[ReadTest, Origin]] = []
        for raw in raw_tests(file.absolute(), documents):
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
        return found, documents
