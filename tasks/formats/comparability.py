"""Whether earlier results of a task that is written anew stay comparable: a baseline goes by its id and its digests."""

from collections.abc import Iterator, Sequence

from passgate.tasks.errors import Problem
from passgate.tasks.formats.digests import FileDigests
from passgate.tasks.formats.evals.write.differences import differences
from passgate.tasks.formats.four_suite import with_files
from passgate.tasks.formats.task_files import SourceTask
from passgate.tasks.formats.task_messages import asked_messages

_MOST_PATHS = 3


def no_longer_comparable(
    before: Sequence[SourceTask], after: Sequence[SourceTask], ids: Sequence[str]
) -> Iterator[Problem]:
    """A problem for each task whose earlier results are no baseline for it any more, at the task, with the reasons.

    `ids` are the tasks' ids among all tasks of the suites folder afterwards.
    """
    digests = _Digests()
    for one, other, task_id in zip(before, after, ids, strict=True):
        # A task that cannot be run has no earlier results, and its files may be missing.
        can_run = not one.origin.cannot_run
        reasons = [*_changed_id(one, task_id), *_changed_digests(one, other, digests)] if can_run else []
        if reasons:
            message = f"earlier results are no baseline for it: {'; '.join(reasons)}"
            yield one.problem("", f"task {one.task.task_id!r}: {message}")


class _Digests:
    """Digests of tasks; the files of each suites folder are read once."""

    def __init__(self) -> None:
        self._files: dict[str, FileDigests] = {}

    def of(self, source: SourceTask) -> tuple[str, str]:
        """The digest of a task and that of its graders, as loading the task gives them."""
        files = self._files.setdefault(str(source.root), FileDigests(source.root))
        messages = asked_messages(source.task, source.root)
        return files.task(source.task, messages), files.graders(with_files(source.task, source.root))


def _changed_id(before: SourceTask, task_id: str) -> Iterator[str]:
    if task_id != before.origin.task_id:
        yield f"its id was {before.origin.task_id!r} and is {task_id!r}"


def _changed_digests(before: SourceTask, after: SourceTask, digests: _Digests) -> Iterator[str]:
    known = zip(("task", "graders"), digests.of(before), digests.of(after), strict=True)
    changed = [name for name, digest, now in known if digest != now]
    if changed:
        yield f"the digest of its {' and '.join(changed)} changes, for {_cause(before, after)} differ"


def _cause(before: SourceTask, after: SourceTask) -> str:
    """What is said otherwise, word by word, as paths in the task."""
    one, other = (source.task.model_dump(mode="json", exclude_defaults=True) for source in (before, after))
    paths = list(differences(one, other))
    more = " and more" if len(paths) > _MOST_PATHS else ""
    return ", ".join(paths[:_MOST_PATHS]) + more or "the files that it names"
