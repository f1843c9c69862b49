"""Load: files in, tasks and the plan of a run out."""

import fnmatch
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.discover import suites_folder_of, task_files
from passgate.tasks.formats.four_suite import TaskReader, shown_path
from passgate.tasks.formats.policy_file import read_policy
from passgate.tasks.formats.prices_file import PRICES_FILE, read_prices
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.run import Plan, Revision, RunRequest
from passgate.tasks.model.task import EvalTask, GateName


def load_policy(file: Path) -> Policy:
    """Read a gates file. Raises `UsageError` when there is none, `InputError` with all its problems."""
    if not file.is_file():
        raise UsageError(f"no gates file {file}: name one with --gates, or make one with `passgate init`")
    policy = read_policy(file, shown_path(file, Path.cwd()))
    if isinstance(policy, Policy):
        return policy
    raise InputError(policy)


def policy_or_default(file: Path) -> Policy:
    """The policy of a gates file, or the one that passgate ships when there is no such file."""
    if file.is_file():
        return load_policy(file)
    with as_file(files("passgate").joinpath("gates.yaml")) as shipped:
        return load_policy(shipped)


def load_prices(gates: Path) -> PriceTable:
    """What models cost: prices.yaml beside the gates file, before the prices that passgate ships.

    Raises `InputError` with all its problems.
    """
    with as_file(files("passgate").joinpath("tasks", "budgets", PRICES_FILE)) as shipped:
        prices = load_price_table(shipped)
    own = gates.parent / PRICES_FILE
    return load_price_table(own).over(prices) if own.is_file() else prices


def load_price_table(file: Path) -> PriceTable:
    """Read one table of prices. Raises `InputError` with all its problems."""
    table = read_prices(file, shown_path(file, Path.cwd()))
    if isinstance(table, PriceTable):
        return table
    raise InputError(table)


def load_tasks(suites_folder: Path, policy: Policy) -> tuple[EvalTask, ...]:
    """Read every task of a suites folder. Raises `InputError` with the problems of all files together."""
    if not suites_folder.is_dir():
        raise UsageError(f"no suites folder {suites_folder}: name one with --suites, or make one with `passgate init`")
    reader = TaskReader(suites_folder, policy, working_folder=Path.cwd())
    tasks, problems = read_files(reader, task_files(suites_folder))
    if problems:
        raise InputError(problems)
    return tasks


def validate_paths(paths: Iterable[Path], policy: Policy) -> tuple[tuple[EvalTask, ...], list[Problem]]:
    """Read the tasks of files and folders. Gives those that are right and every problem of the others."""
    by_folder: dict[Path, list[Path]] = {}
    for path in paths:
        for file in task_files(path) if path.is_dir() else [path]:
            by_folder.setdefault(suites_folder_of(file), []).append(file)
    tasks: list[EvalTask] = []
    problems: list[Problem] = []
    for folder, members in by_folder.items():
        reader = TaskReader(folder, policy, working_folder=Path.cwd())
        good, bad = read_files(reader, dict.fromkeys(members))
        tasks.extend(good)
        problems.extend(bad)
    return tuple(tasks), problems


def read_files(reader: TaskReader, paths: Iterable[Path]) -> tuple[tuple[EvalTask, ...], list[Problem]]:
    """The tasks of files and the problems of files; a task id that stands twice is a problem."""
    tasks: dict[str, EvalTask] = {}
    problems: list[Problem] = []
    for file in paths:
        answer = reader.read(file)
        if isinstance(answer, list):
            problems.extend(answer)
        elif answer.task_id in tasks:
            problems.append(_duplicate(answer, tasks[answer.task_id]))
        else:
            tasks[answer.task_id] = answer
    return tuple(tasks.values()), list(dict.fromkeys(problems))


def _duplicate(task: EvalTask, first: EvalTask) -> Problem:
    return Problem(
        file=task.file,
        line=task.line,
        column=1,
        path="task_id",
        message=f"{task.task_id!r} is also the task_id of {first.file}:{first.line}",
    )


def make_plan(gate: GateName, request: RunRequest, agent: AgentSpec, *, revision: Revision, version: str) -> Plan:
    """Everything that a run of a gate needs, from files. Raises `InputError` or `UsageError`; runs nothing."""
    policy = load_policy(Path(request.gates))
    if gate not in policy.gates:
        raise UsageError(f"{request.gates} has no gate {gate!s}; it has {', '.join(sorted(policy.gates))}")
    of_gate = [
        task
        for task in load_tasks(Path(request.suites), policy)
        if gate in task.gates and task.suite in policy.gates[gate].suites
    ]
    selected = [task for task in of_gate if _selected(task, request.task)]
    if request.task is not None and not selected:
        raise UsageError(f"no task of {gate!s} matches --task {request.task!r}")
    created_at = datetime.now(UTC)
    return Plan(
        run_id=f"{created_at:%Y%m%dT%H%M%SZ}-{gate}-{secrets.token_hex(2)}",
        gate=gate,
        request=request,
        agent=agent,
        created_at=created_at,
        suites_folder=str(Path(request.suites).absolute()),
        policy=policy,
        tasks=tuple(_with_k(task, request.k) for task in selected),
        unselected=len(of_gate) - len(selected),
        revision=revision,
        passgate_version=version,
    )


def _selected(task: EvalTask, pattern: str | None) -> bool:
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for name in (task.task_id, f"{task.suite}/{task.task_id}"))


def _with_k(task: EvalTask, k: int | None) -> EvalTask:
    return task if k is None else task.model_copy(update={"k": k})
