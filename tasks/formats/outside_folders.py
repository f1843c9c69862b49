"""What tasks use that lies outside of their suites folder."""

import os
from collections.abc import Iterable
from pathlib import Path

from passgate.tasks.formats.digests import FileDigests, all_graders
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.workspace import Repository, Workspace


def graders_outside(tasks: Iterable[EvalTask], suites_folder: Path) -> set[str]:
    """The files outside of a suites folder that its tasks are graded with, relative to it: tests and settings that are
    named, scripts that are run, and prompts of judges.
    """
    graders = [grader for task in tasks for grader in all_graders(task.graders)]
    prompts = {grader.prompt_file for grader in graders if isinstance(grader, LlmGrader) and grader.prompt_file}
    digests = FileDigests(suites_folder)
    return {name for name in {*prompts, *digests.files_of_graders(graders)} if _is_outside(name)}


def in_place_of(task: EvalTask, copy: Path, original: Path) -> EvalTask:
    """A task that was read from a copy of a suites folder, with the folders that its agent works on outside of it as
    they are around the original, and local repositories too.

    An agent's own files may lie in them, and the agent under test is the original's. Where such a folder differs the
    task is another one, and so is its digest.
    """
    if task.workspace is None:
        return task
    workspace = _moved(task.workspace, copy, original)
    if workspace == task.workspace:
        return task
    template = task.workspace.template
    digest = task.task_digest
    if template is not None and workspace.template != template:
        before, now = (FileDigests(folder).of(template) for folder in (copy, original))
        digest = digest if before == now else digest_of([digest, now])
    return task.model_copy(update={"workspace": workspace, "task_digest": digest})


def _moved(workspace: Workspace, copy: Path, original: Path) -> Workspace:
    template = workspace.template
    if template is not None and _is_outside(template) and (original / template).is_dir():
        template = _seen_from(copy, original / template)
    repos = tuple(_moved_repository(repository, copy, original) for repository in workspace.repos)
    return workspace.model_copy(update={"template": template, "repos": repos})


def _moved_repository(repository: Repository, copy: Path, original: Path) -> Repository:
    # A copy holds no repository, wherever in it that lies.
    if not (original / repository.repo).is_dir():
        return repository
    return repository.model_copy(update={"repo": _seen_from(copy, original / repository.repo)})


def _is_outside(name: str) -> bool:
    return Path(os.path.normpath(name)).parts[:1] == (os.pardir,)


def _seen_from(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
