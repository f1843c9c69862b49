"""What tasks use that lies outside of their suites folder."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from passgate.tasks.formats.command_files import is_outside, named_outside, run_outside
from passgate.tasks.formats.digests import (
    FileDigests,
    all_graders,
    grader_commands,
    hook_commands,
    message_files,
    named_by_graders,
)
from passgate.tasks.formats.rules import SANDBOXES, sandbox_names
from passgate.tasks.model.assertions import LlmGrader
from passgate.tasks.model.digest import digest_of
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.workspace import Repository, Workspace


def judging_outside(tasks: Sequence[EvalTask], suites_folder: Path) -> set[str]:
    """The files and folders outside of a suites folder that its tasks go by, relative to it: what they are graded with
    (tests and settings, prompts of judges, what commands name), scripts of hooks, and files of messages.

    Whether they are there does not matter. The folders that the agent works on are not among them, and neither is what
    hooks copy.
    """
    graders = [grader for task in tasks for grader in all_graders(task.graders)]
    named = {name for command in {*grader_commands(graders)} for name in named_outside(command)}
    hooks = {command for task in tasks for command in hook_commands(task.workspace)}
    run = {name for command in hooks for name in run_outside(command, suites_folder)}
    messages = {name for task in tasks for name in message_files((*task.messages, *task.expected_messages))}
    prompts = {grader.prompt_file for grader in graders if isinstance(grader, LlmGrader) and grader.prompt_file}
    return {name for name in {*prompts, *named_by_graders(graders), *named, *run, *messages} if is_outside(name)}


def given_to_agents(tasks: Iterable[EvalTask], suites_folder: Path) -> set[str]:
    """The folders of a suites folder that agents get copies of, relative to it."""
    sandboxes = {f"{SANDBOXES}/{name}/files" for name in sandbox_names(suites_folder)}
    return sandboxes | {task.workspace.template for task in tasks if task.workspace and task.workspace.template}


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
    if template is not None and is_outside(template) and (original / template).is_dir():
        template = _seen_from(copy, original / template)
    repos = tuple(_moved_repository(repository, copy, original) for repository in workspace.repos)
    return workspace.model_copy(update={"template": template, "repos": repos})


def _moved_repository(repository: Repository, copy: Path, original: Path) -> Repository:
    # A copy holds no repository, wherever in it that lies.
    if not (original / repository.repo).is_dir():
        return repository
    return repository.model_copy(update={"repo": _seen_from(copy, original / repository.repo)})


def _seen_from(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
