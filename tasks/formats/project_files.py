"""The files beside gates.yaml, that one included, as models with the place of every problem, and `.env` files."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import yaml
from dotenv import dotenv_values

from passgate.tasks.errors import Problem, StorageError, UsageError
from passgate.tasks.files.atomic_write import write_atomically
from passgate.tasks.formats.document import UnreadableFileError, read_document, read_source
from passgate.tasks.formats.findings import Finding, is_address
from passgate.tasks.formats.schema_check import nearest, read_model
from passgate.tasks.model.base import is_blank
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import GatePolicy, Policy, QuarantineFile, Rule, is_branch_name
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import EvalTask, Suite, guards_safety

_NEVER_A_FAIL = {
    Rule.MISSING_EVIDENCE: "missing evidence is INCONCLUSIVE in every gate and cannot be made a FAIL",
    Rule.SIGN_OFF: "a sign-off is asked for with `sign_off: true` in the gate",
}
AGENTS_FILE = "agents.yaml"
TARGETS_FILE = Path(".agentv", "targets.yaml")  # AgentV's, for its agents
PRICES_FILE = "prices.yaml"
PINS_FILE = "baseline.yaml"
_PINS_HEADER = (
    "# What passgate compares with, whatever is newer: `passgate baseline show`, `passgate baseline clear`.\n"
)
QUARANTINE_FILE = "quarantine.yaml"
_RATES_SHAPE = 'expected a mapping as in {"golden/task_id": 0.98}, or a list of rates in the order of the tasks'


def read_policy(file: Path, name: str) -> Policy | list[Problem]:
    """Return the policy of a gates file, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(Policy, "gates", file, name, _policy_findings)


def _policy_findings(policy: Policy) -> Iterator[Finding]:
    for suite, rules in policy.suites.items():
        if rules.budgets.max_steps is not None:
            yield ("suites", suite, "budgets", "max_steps"), "the suite's own max_steps is the default and the limit"
    for gate, gate_rules in policy.gates.items():
        for inner, message in _gate_findings(gate_rules, policy):
            yield ("gates", gate, *inner), message
    if not is_branch_name(policy.baseline.branch):
        yield ("baseline", "branch"), f"{policy.baseline.branch!r} is not the name of a branch, as `main` is"


def _gate_findings(rules: GatePolicy, policy: Policy) -> Iterator[Finding]:
    for index, suite in enumerate(rules.suites):
        if suite not in policy.suites:
            yield ("suites", index), f"`suites:` says nothing of {suite!s}"
    for index, rule in enumerate(rules.blocks_on):
        if rule in _NEVER_A_FAIL:
            yield ("blocks_on", index), _NEVER_A_FAIL[rule]
    wanted = rules.admission
    if wanted is not False and wanted.passes > wanted.of:
        yield ("admission",), f"`passes: {wanted.passes}` is more than `of: {wanted.of}`: no task could be admitted"
    for index, pattern in enumerate(rules.reuse.agent_files if rules.reuse is not None else ()):
        path = PurePath(pattern)
        if path.is_absolute() or ".." in path.parts:
            yield ("reuse", "agent_files", index), "must stay in the folder of the gates file, as in `src/**/*.py`"


def read_prices(file: Path, name: str) -> PriceTable | list[Problem]:
    """Return the prices of a file, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(PriceTable, "prices", file, name, _prices_findings, at_key=True)


def _prices_findings(table: PriceTable) -> Iterator[Finding]:
    patterns = list(table.models)
    for position, pattern in enumerate(patterns):
        if is_blank(pattern):
            yield ("models", pattern), "a price needs the name of a model, or a pattern"
            continue
        # A pattern with `*` as its only wildcard that matches the text of another one matches all that this stands for.
        wide = (one for one in patterns[:position] if "*" in one and not {"?", "["} & {*one})
        wider = next((one for one in wide if fnmatchcase(pattern, one)), None)
        if wider is not None:
            yield ("models", pattern), f"never used: {wider!r} stands before it and matches the same names"


def read_pins(file: Path, name: str) -> Pins | list[Problem]:
    """Return what a file pins, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(Pins, "baseline", file, name, _pins_findings, at_key=True)


def _pins_findings(pins: Pins) -> Iterator[Finding]:
    for key in ("reason", "by"):
        if is_blank(getattr(pins, key)):
            yield (key,), "must not be blank"
    says_runs = "runs" in pins.model_fields_set
    if pins.commit is not None and says_runs:
        yield ("runs",), "give `commit` or `runs`, not both"
    elif says_runs and not pins.runs:
        yield ("runs",), "must not be empty"
    elif pins.commit is None and not pins.runs:
        yield (), "one of these keys is needed: commit, runs"


def write_pins(file: Path, pins: Pins) -> None:
    """Write a file whole or not at all, over what was there; every text is of one line. Raises `UsageError`."""
    content = pins.model_dump(mode="json", exclude_none=True)
    if not pins.runs:
        del content["runs"]
    try:
        write_atomically(file, _PINS_HEADER + yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    except StorageError as error:  # no record of a run: a place that the user named
        raise UsageError(str(error)) from error


def read_quarantine(
    file: Path, name: str, today: date, tasks: Sequence[EvalTask] | None = None
) -> QuarantineFile | list[Problem]:
    """Return the quarantine of a file, or everything that is wrong with it. `name` is what problems call the file.

    With `tasks` the entries name them as `suite/task_id`, and one that is not there or that guards safety is a problem.
    That an entry has expired is none.
    """
    # By all that an entry may call a task; the name with the suite goes before another task's id.
    known = {task.task_id: task for task in tasks or ()} | {task.name: task for task in tasks or ()}

    def findings(quarantine: QuarantineFile) -> Iterator[Finding]:
        yield from _quarantine_findings(quarantine, today)
        seen: dict[str, int] = {}
        for index, entry in enumerate(quarantine.tasks):
            first = seen.setdefault(known[entry.task].name if entry.task in known else entry.task, index)
            if first != index:
                yield ("tasks", index, "task"), f"duplicate task (first in tasks[{first}])"
        if tasks is not None:
            yield from _task_findings([entry.task for entry in quarantine.tasks], known)

    answer = read_model(QuarantineFile, "quarantine", file, name, findings)
    if tasks is None or isinstance(answer, list):
        return answer
    entries = [entry.model_copy(update={"task": known[entry.task].name}) for entry in answer.tasks]
    return answer.model_copy(update={"tasks": tuple(entries)})


def _quarantine_findings(quarantine: QuarantineFile, today: date) -> Iterator[Finding]:
    if len(quarantine.tasks) > quarantine.most:
        number, most = len(quarantine.tasks), quarantine.most
        yield ("tasks", most), f"{number} entries are more than `most: {most}`: repair a task and take it out"
    latest = today + timedelta(days=quarantine.most_days)
    for index, entry in enumerate(quarantine.tasks):
        for key in ("task", "owner", "reason"):
            if is_blank(getattr(entry, key)):
                yield ("tasks", index, key), "must not be blank"
        # What cannot be seen is left out by `urlsplit`, and would not be by who follows the link.
        if not (is_address(entry.issue) and entry.issue.isprintable() and " " not in entry.issue):
            yield ("tasks", index, "issue"), "not a link as in https://host/issues/12, without a password in it"
        if entry.expires > latest:
            message = f"further ahead than `most_days: {quarantine.most_days}`: {latest} is the latest day today"
            yield ("tasks", index, "expires"), message


def _task_findings(names: Sequence[str], known: Mapping[str, EvalTask]) -> Iterator[Finding]:
    for index, name in enumerate(names):
        task = known.get(name)
        if task is None:
            close = difflib.get_close_matches(name, list(known), n=1)
            remedy = f"; did you mean {close[0]!r}?" if close else ": take the entry out"
            yield ("tasks", index, "task"), f"no task of the suites has this name{remedy}"
        elif guards_safety(task):
            why = "it is adversarial" if task.suite is Suite.ADVERSARIAL else "its graders can find a violation"
            remedy = "nothing offsets a violation: move what is flaky to a task of its own"
            yield ("tasks", index, "task"), f"guards safety ({why}), and {remedy}"


def read_rates(file: Path, name: str, tasks: Sequence[str]) -> dict[str, float] | list[Problem]:
    """Return the pass rates that a file gives to tasks, or everything that is wrong with it. `name` is what problems
    call the file, `tasks` are those of the gate by their `suite/task_id`, in their order. A mapping need not name all
    of them.
    """
    document = read_document(file, name)
    data = document.data
    if document.problems:
        return _not_json(file, name) or document.problems
    if data == {}:
        return [document.problem((), f"the file gives no rate: {_RATES_SHAPE}")]
    if not isinstance(data, Mapping | list):
        return [document.problem((), _RATES_SHAPE)]
    problems = []
    if isinstance(data, list) and len(data) != len(tasks):
        problems.append(document.problem((), f"{len(data)} rates for the {len(tasks)} tasks of the gate"))
    for name in data if isinstance(data, Mapping) else ():
        if name not in tasks:
            message = f"the gate has no task {name!r}{nearest(name, tasks)}"
            problems.append(document.problem((name,), message, at_key=True))
    for key, rate in data.items() if isinstance(data, Mapping) else enumerate(data):
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            problems.append(document.problem((key,), "expected a rate from 0 to 1, as in 0.98"))
    rates = data if isinstance(data, Mapping) else dict(zip(tasks, data, strict=False))
    return problems or {task: float(rate) for task, rate in rates.items()}


def _not_json(file: Path, name: str) -> list[Problem]:
    """Return what keeps a file from being the JSON that its name says it is."""
    try:
        if file.suffix.lower() == ".json":
            # What a file lacks at its end, it lacks behind its last character and not in the empty lines after that.
            json.loads(read_source(file).rstrip())
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg}"
        return [Problem(file=name, line=error.lineno, column=error.colno, path="", message=message)]
    except (UnreadableFileError, ValueError, RecursionError):
        pass  # reading it as YAML has said what is wrong with it
    return []


ENV_FILE = ".env"
MAX_ENV_BYTES = 1024 * 1024


class EnvFileError(ValueError):
    """A `.env` file that cannot be read, and why."""

    def __init__(self, file: Path, message: str) -> None:
        super().__init__(message)
        self.file = file


def variables_for(folder: Path, repository: Path, process: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for files of a folder: those of the process, then of the `.env` files from the folder up
    to the repository, the nearest first. Raise `EnvFileError`.
    """
    variables: dict[str, str] = {}
    for parent in reversed((folder, *folder.parents)):
        variables |= read_env_file(parent / ENV_FILE) if parent.is_relative_to(repository) else {}
    return variables | dict(process)


def read_env_file(file: Path) -> dict[str, str]:
    """Return the variables of one `.env` file, if it exists. Raise `EnvFileError`."""
    try:
        if not file.is_file():
            return {}
        if file.stat().st_size > MAX_ENV_BYTES:
            raise EnvFileError(file, f"cannot be read: the file is larger than {MAX_ENV_BYTES // 1024} KiB")
        values = dotenv_values(file, interpolate=False, encoding="utf-8-sig")
    except OSError as error:
        raise EnvFileError(file, f"cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise EnvFileError(file, "cannot be read: this is not UTF-8 text") from error
    # A line without `=` names a variable and sets nothing.
    return {name: value for name, value in values.items() if value is not None}
