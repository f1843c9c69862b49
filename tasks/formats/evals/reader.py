"""Eval files of every dialect: from a file to its tasks."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.evals.compose import raw_tests
from passgate.tasks.formats.evals.documents import Documents
from passgate.tasks.formats.evals.graders import GRADER_LISTS, read_own_graders
from passgate.tasks.formats.evals.messages import Variables, read_messages
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.evals.raw import RawTest, SuiteContext
from passgate.tasks.formats.evals.runtime import read_blocks, read_file_runtime
from passgate.tasks.formats.evals.sources import Ground, Sources, add_complaints, full_id, ground_of
from passgate.tasks.formats.evals.tests import NO_PREPROCESSORS, ReadTest, SuiteWide, read_test
from passgate.tasks.formats.normalise import Loaded, Origin, normalised
from passgate.tasks.formats.rules import policy_findings
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import TaskFile

Shown = Callable[[Path], str]  # a file's name as users know it
_NOT_HAD = {
    "preprocessors": NO_PREPROCESSORS,
}


class EvalReader:
    """Reads eval files of one suites folder under one policy."""

    def __init__(self, suites_folder: Path, policy: Policy, environment: Mapping[str, str], shown: Shown) -> None:
        self._suites_folder = suites_folder.absolute()
        self._policy = policy
        self._environment = environment
        self._shown = shown
        self._digests = FileDigests(self._suites_folder)

    def read(self, file: Path) -> Loaded:
        """Return the tests of an eval file as tasks, and everything that is wrong with it."""
        complaints = Complaints()
        ground = ground_of(file, self._suites_folder)
        tasks = [
            normalised(test.task, test.messages, origin, self._policy, self._digests)
            for test, origin in self._tests(file, ground, complaints)
        ]
        return Loaded(
            tasks=tuple(tasks),
            problems=tuple(dict.fromkeys(complaints.problems)),
            warnings=tuple(dict.fromkeys(complaints.warnings)),
            cannot_run=tuple(dict.fromkeys(complaints.cannot_run)),
            files=1,
            outside=ground.looked_at_outside(),
        )

    def task_files(self, file: Path) -> tuple[tuple[tuple[TaskFile, Origin], ...], tuple[Problem, ...]]:
        """Return the same tasks as task files have them, each with its origin, and the problems."""
        complaints = Complaints()
        ground = ground_of(file, self._suites_folder)
        said = tuple((test.task, origin) for test, origin in self._tests(file, ground, complaints))
        # A problem of the whole file is reported with each of its tests.
        return said, tuple(dict.fromkeys(complaints.problems))

    def _tests(self, file: Path, ground: Ground, complaints: Complaints) -> Iterator[tuple[ReadTest, Origin]]:
        raws = raw_tests(file, ground, complaints, environment=self._environment, shown=self._shown)
        tests = _Tests(self._policy, complaints, self._environment, self._shown)
        for raw in raws:
            answer, own = tests.read(raw)
            add_complaints(complaints, own)
            if answer is None:
                continue
            place = tests.places[answer.task.task_id, raw.prompt_label]
            origin = Origin(
                task_id=full_id(answer.task.task_id, raw.runtime.file, raw.context.ground, raw.prompt_label),
                file=place.file,
                line=place.line,
                suite_assumed=answer.suite_assumed,
                cannot_run=tuple(dict.fromkeys(map(str, own.cannot_run))),
            )
            yield answer, origin


@dataclass
class _Tests:
    """Reads the tests of one file; what a file says of all its tests is read once."""

    policy: Policy
    complaints: Complaints
    environment: Mapping[str, str]
    shown: Shown
    texts: dict[Path, str | ValueError] = field(default_factory=dict)
    wide: dict[tuple[int, bool], SuiteWide] = field(default_factory=dict)
    documents: dict[int, Documents] = field(default_factory=dict)
    # Where the tests stand, by their ids and prompts: each prompt of a file has tests of the same ids.
    places: dict[tuple[str, str | None], Problem] = field(default_factory=dict)

    def read(self, raw: RawTest) -> tuple[ReadTest | None, Complaints]:
        """Return a test, and the complaints about it and about its file."""
        own = Complaints()
        sources = self._sources(raw.context, own)
        if raw.runtime is not raw.context:
            of_runtime = self._sources(raw.runtime, own)
            add_complaints(own, self._wide(raw.runtime, Variables({}), of_runtime).complaints)
        answer = read_test(raw, lambda variables: self._wide(raw.context, variables, sources), sources)
        if answer is not None:
            place = raw.node.problem(f"the id {answer.task.task_id!r} stands here a second time")
            first = self.places.setdefault((answer.task.task_id, raw.prompt_label), place)
            if first is not place:
                message = f"the test {answer.task.task_id!r} has the id of the one in {first.file}:{first.line}"
                own.problems.append(raw.node.problem(message))
            own.problems += [raw.node.problem(message) for _, message in policy_findings(answer.task, self.policy)]
        return (None if own.problems else answer), own

    def _sources(self, context: SuiteContext, complaints: Complaints) -> Sources:
        known = self.documents.get(id(context))
        if known is None:
            plain = Documents(context.ground, self.complaints, self.environment, self.shown)
            known = self.documents[id(context)] = plain.for_files_of(context.root)
        return Sources(context.ground, complaints, known.read, self.texts)

    def _wide(self, context: SuiteContext, variables: Variables, sources: Sources) -> SuiteWide:
        """Return what a file says of all its tests, with the variables of one test filled in where it has
        placeholders.
        """
        key = (id(context), variables.is_template)
        known = self.wide.get(key)
        if known is None:
            without = Variables({}, is_template=variables.is_template)
            known = self.wide[key] = _suite_wide(context.root, without, sources)
        # Read anew for a test only where its variables change it: a data set has thousands of tests.
        return _suite_wide(context.root, variables, sources) if variables.values and known.has_places else known


def _suite_wide(root: Node, variables: Variables, sources: Sources) -> SuiteWide:
    """Return the suite-wide parts of an eval file, with the variables of a test where there are any."""
    own = replace(sources, complaints=Complaints())
    for key, message in _NOT_HAD.items():
        if (said := root.get(key)) and said.value:  # an empty list asks for nothing
            own.cannot_run(said, message, at_key=True)
    read_blocks(root, own)
    read_file_runtime(root, own.complaints)
    said = variables.filled_at(root, "input", own)
    messages = () if said is None else read_messages(said, own)
    variable = {key: root.value.get(key) for key in ("input", "rubrics", "execution", *GRADER_LISTS)}
    has_places = "{{" in json.dumps(variable, default=str)
    return SuiteWide(messages, read_own_graders(root, variables, own), has_places, own.complaints)
