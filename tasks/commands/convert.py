"""Convert eval files to task files, or one eval file between YAML and JSONL. Read what is written first."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import attrgetter
from pathlib import Path

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.conversion import TaskFiles, eval_file_texts, lost_baselines, staging, task_files
from passgate.tasks.formats.document import SourceTexts
from passgate.tasks.formats.evals.documents import find_ground, full_id
from passgate.tasks.formats.folder import NamedFile, path_files, sidecar_names
from passgate.tasks.formats.loading import Found, SourceTask, read_eval_file, read_task_file
from passgate.tasks.formats.serialise import Serialisation, differences, serialised_task
from passgate.tasks.model.policy import Policy
from passgate.tasks.reports.figures import listed

_MOST_NAMED = 5
_NO_TASKS = "passgate rewrites eval files only: keep task files as they are, `run` reads both kinds from one folder"


class TargetFormat(StrEnum):
    """What eval files can be written as."""

    FOUR_SUITE = "four-suite"
    EVAL = "eval"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Destination:
    """Where eval files are written, and as what."""

    dialect: TargetFormat
    path: Path  # a folder for `four-suite`, else a file
    policy: Policy
    environment: Mapping[str, str]  # the variables of the process, which eval files may ask for
    lossy: bool = False  # omit what a task file cannot express
    overwrite: bool = False  # write over files that exist


@dataclass(frozen=True)
class Converted:
    """What was written."""

    tasks: int
    files: tuple[Path, ...]
    left_out: tuple[Problem, ...]  # what a task file cannot express, at the tests that say it
    renamed: tuple[str, ...]  # tests that had the id of another: `a is written as b/a`
    not_comparable: tuple[Problem, ...]  # tests whose earlier results are no baseline any more, and why


def convert(paths: Sequence[Path], destination: Destination) -> Converted:
    """Write eval files as another dialect: all of their tests, or nothing.

    Raise `InputError` with their problems or what cannot be written; `UsageError` for task files and bad destinations.
    """
    named, _ = path_files(paths, destination.environment, SourceTexts())
    own = [str(one.file) for one in named if not one.is_eval]
    if own:
        raise UsageError(f"not eval files: {listed(own, _MOST_NAMED)}; {_NO_TASKS}")
    if not named:
        raise UsageError(f"no eval files in {', '.join(map(str, paths))}")
    found = [read_eval_file(one.file, one.root, destination.policy, destination.environment) for one in named]
    if problems := tuple(dict.fromkeys(problem for one in found for problem in one.problems)):
        raise InputError(problems)
    try:
        if destination.dialect is TargetFormat.FOUR_SUITE:
            return _write_tasks([task for one in found for task in one.tasks], destination)
        return _write_eval_file(named, found[0], destination)
    except (OSError, UnicodeEncodeError) as error:
        raise UsageError(f"{destination.path} cannot be written: {error}") from error


def _write_eval_file(named: Sequence[NamedFile], found: Found, destination: Destination) -> Converted:
    """Write one eval file under another name, and check that it has the same tests."""
    source, out = named[0].file, destination.path
    if len(named) > 1:
        raise UsageError(f"--to {destination.dialect} writes one eval file anew: name one, not {len(named)}")
    _check_name(source, destination)
    texts = eval_file_texts(source, out)
    _refuse_existing(texts, destination)
    with staging(texts) as staged:
        # The first file names the others: a JSONL file has its sidecar beside it.
        first = next(iter(staged.places))
        read = read_eval_file(first, named[0].root, destination.policy, destination.environment)
        one, other = ([(each.task, len(each.origin.cannot_run)) for each in said.tasks] for said in (found, read))
        if read.problems or one != other:
            reasons = [problem.message for problem in read.problems] or ["its tests would be others"]
            raise UsageError(f"{source} cannot be written as {out}: {reasons[0]}")
        ground = find_ground(out, named[0].root)
        prefix, old = (full_id("", file.absolute(), ground) for file in (out, source))
        ids = [prefix + task.origin.task_id.removeprefix(old) for task in found.tasks]
        changed = tuple(lost_baselines(found.tasks, read.tasks, ids))
        staged.publish()
    return Converted(len(found.tasks), tuple(texts), (), (), changed)


def _check_name(source: Path, destination: Destination) -> None:
    path, is_jsonl = destination.path, destination.dialect is TargetFormat.JSONL
    suffixes = (".jsonl",) if is_jsonl else (".yaml", ".yml")
    if path.suffix not in suffixes or path.is_dir():
        raise UsageError(f"--out {path}: expected the name of a file that ends in {' or '.join(suffixes)}")
    if path.absolute().parent.resolve() != source.absolute().parent.resolve():
        raise UsageError(f"--out {path}: name a file in the folder of {source}, for its paths start there")
    own = (path.with_suffix(".yaml").absolute(), source.absolute())
    others = [name for name in sidecar_names(path) if name.absolute() not in own and name.exists()]
    if is_jsonl and others:
        raise UsageError(f"--out {path}: {others[0]} would be its sidecar too; take another name")


def _refuse_existing(texts: Mapping[Path, str], destination: Destination) -> None:
    # A dangling link does not exist for `exists`, but writing would go to where it points.
    there = [str(file) for file in texts if file.exists() or file.is_symlink()]
    if there and not destination.overwrite:
        raise UsageError(f"{', '.join(there[:20])}: there already; --force writes over it")


def _write_tasks(sources: Sequence[SourceTask], destination: Destination) -> Converted:
    """Write a task file for each test, and check that the files say the same."""
    if destination.path.exists() and not destination.path.is_dir():
        raise UsageError(f"--out {destination.path}: task files are written into a folder, and this is a file")
    tasks = _unique_tasks(sources)
    output = task_files(tasks, destination.path)
    _refuse_existing(output.texts, destination)
    not_written = [
        task.problem(loss.path, f"task {task.task.task_id!r}: {loss.reason}")
        for task, losses in zip(tasks, output.losses, strict=True)
        for loss in losses
    ]
    with staging(output.texts) as staged:
        found = [read_task_file(written, output.root, destination.policy) for written in staged.places]
        unreadable = [
            task.problem(problem.path, f"task {task.task.task_id!r} cannot be written to {place}: {problem.message}")
            for task, place, one in zip(tasks, staged.places.values(), found, strict=True)
            for problem in one.problems
        ]
        if unreadable:
            # A loss may be the reason why the rest cannot be read, so it is reported first.
            _refuse_losses(not_written, destination)
            raise InputError(unreadable)
        read = [task for one in found for task in one.tasks]
        left_out = (*not_written, *_unread_parts(tasks, output, read))
        _refuse_losses(left_out, destination)
        changed = tuple(lost_baselines(sources, read, [task.task.task_id for task in tasks]))
        staged.publish()
    renamed = tuple(
        f"{one.origin.file}:{one.origin.line}: {one.task.task_id!r} is written as {other.task.task_id!r}"
        for one, other in zip(sources, tasks, strict=True)
        if one.task.task_id != other.task.task_id
    )
    return Converted(len(tasks), tuple(output.texts), left_out, renamed, changed)


def _refuse_losses(losses: Sequence[Problem], destination: Destination) -> None:
    if losses and not destination.lossy:
        raise InputError([replace(loss, message=f"{loss.message}; --lossy omits it") for loss in losses])


def _unique_tasks(sources: Sequence[SourceTask]) -> list[SourceTask]:
    """Return the tasks, each with an id of its own. Raise `InputError` for tasks that have the same id anyway."""

    def with_prompt(one: SourceTask) -> str:
        _, found, label = one.origin.task_id.rpartition(f"{one.task.task_id}#")
        return f"{one.task.task_id}#{label}" if found else one.task.task_id

    def duplicates() -> list[SourceTask]:
        counts = Counter(one.task.task_id for one in tasks)
        return [one for one in tasks if counts[one.task.task_id] > 1]

    tasks = list(sources)
    # The prompt's name comes first: it is short, while the full id has the file's path in it.
    for own_id in (with_prompt, attrgetter("origin.task_id")):
        ids = {one.task.task_id for one in duplicates()}
        tasks = [
            replace(one, task=one.task.model_copy(update={"task_id": own_id(one)})) if one.task.task_id in ids else one
            for one in tasks
        ]
    message = "other tests have this id too; convert them one by one"
    if problems := [one.problem("", f"{one.task.task_id!r}: {message}") for one in duplicates()]:
        raise InputError(problems)
    return tasks


def _unread_parts(tasks: Sequence[SourceTask], output: TaskFiles, read: Sequence[SourceTask]) -> Iterator[Problem]:
    """Yield what the written files do not say."""
    for task, expected, again in zip(tasks, output.expected, read, strict=True):
        whom = f"task {task.task.task_id!r}"
        for path in differences(expected, serialised_task(again.task, Serialisation(lambda path: path))):
            yield task.problem(path, f"{whom}: a task file has no words for it")
        # What kept the task from a run is lost with it: then a run would take the task for one that it can measure.
        if len(again.origin.cannot_run) < len(task.origin.cannot_run):
            for why in task.origin.cannot_run:
                yield task.problem("", f"{whom} cannot be run, and could be then: {why}")
