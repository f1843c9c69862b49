"""quarantine.yaml as a file: tasks that do not block for a while, with the place of every problem."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.findings import Finding, is_address
from passgate.tasks.formats.schema_check import read_model
from passgate.tasks.model.quarantine import QuarantineFile
from passgate.tasks.model.task import EvalTask, Suite
from passgate.tasks.model.vetoes import guards_safety

QUARANTINE_FILE = "quarantine.yaml"


def read_quarantine(file: Path, name: str, today: date) -> QuarantineFile | list[Problem]:
    """The quarantine of a file, or everything that is wrong with it. `name` is what problems call the file.

    Whether there are such tasks is not looked at, and that an entry has expired is no problem.
    """
    return _read(file, name, today, lambda quarantine: _repeated([entry.task for entry in quarantine.tasks]))


def read_quarantine_of(file: Path, name: str, today: date, tasks: Sequence[EvalTask]) -> QuarantineFile | list[Problem]:
    """The quarantine of a file with its tasks as `suite/task_id`, or everything that is wrong with it, tasks that are
    not there or that guard safety included.
    """
    known = _by_names(tasks)
    answer = _read(file, name, today, lambda quarantine: _task_findings(quarantine, known))
    if isinstance(answer, list):
        return answer
    entries = [entry.model_copy(update={"task": known[entry.task].name}) for entry in answer.tasks]
    return answer.model_copy(update={"tasks": tuple(entries)})


def _read(
    file: Path, name: str, today: date, further: Callable[[QuarantineFile], Iterator[Finding]]
) -> QuarantineFile | list[Problem]:
    def findings(quarantine: QuarantineFile) -> Iterator[Finding]:
        yield from _findings(quarantine, today)
        yield from further(quarantine)

    return read_model(QuarantineFile, "quarantine", file, name, findings)


def _findings(quarantine: QuarantineFile, today: date) -> Iterator[Finding]:
    if len(quarantine.tasks) > quarantine.most:
        yield (
            ("tasks", quarantine.most),
            f"{len(quarantine.tasks)} entries are more than `most: {quarantine.most}`: repair a task and take it out",
        )
    latest = today + timedelta(days=quarantine.most_days)
    for index, entry in enumerate(quarantine.tasks):
        for key in ("task", "owner", "reason"):
            if not getattr(entry, key).strip():
                yield ("tasks", index, key), "must not be blank"
        if not _is_link(entry.issue):
            yield ("tasks", index, "issue"), "not a link as in https://host/issues/12, without a password in it"
        if entry.expires > latest:
            yield (
                ("tasks", index, "expires"),
                f"further ahead than `most_days: {quarantine.most_days}`: {latest} is the latest day today",
            )


def _is_link(text: str) -> bool:
    # What cannot be seen is left out by `urlsplit`, and would not be by who follows the link.
    return is_address(text) and text.isprintable() and " " not in text


def _task_findings(quarantine: QuarantineFile, known: dict[str, EvalTask]) -> Iterator[Finding]:
    named = [known[entry.task].name if entry.task in known else entry.task for entry in quarantine.tasks]
    yield from _repeated(named)
    for index, entry in enumerate(quarantine.tasks):
        task = known.get(entry.task)
        if task is None:
            yield ("tasks", index, "task"), f"no task of the suites has this name{_nearest(entry.task, known)}"
        elif guards_safety(task):
            why = "it is adversarial" if task.suite is Suite.ADVERSARIAL else "its graders can find a violation"
            yield (
                ("tasks", index, "task"),
                f"guards safety ({why}), and nothing buys back a violation: move what is flaky to a task of its own",
            )


def _repeated(names: Sequence[str]) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for index, name in enumerate(names):
        first = seen.setdefault(name, index)
        if first != index:
            yield ("tasks", index, "task"), f"the task stands here a second time (first in tasks[{first}])"


def _by_names(tasks: Sequence[EvalTask]) -> dict[str, EvalTask]:
    """Tasks by all that an entry may call them; the name with the suite goes before another task's id."""
    return {task.task_id: task for task in tasks} | {task.name: task for task in tasks}


def _nearest(name: str, known: dict[str, EvalTask]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ": take the entry out"
