"""Commands about task files: `passgate validate`, `show`, `check-graders`, `convert` and `schema`."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from passgate.flows.cli import options
from passgate.flows.cli.output import OutputForm, answer, color, output_form, width
from passgate.flows.process.interrupts import run_until_interrupted
from passgate.tasks.errors import ExitCode, InputError, PassgateError, Problem, UsageError
from passgate.tasks.reports.messages import write_line

if TYPE_CHECKING:
    from passgate.tasks.formats.four_suite import Loaded
    from passgate.tasks.model.policy import Policy
    from passgate.tasks.model.task import EvalTask

_SUITES: Final = Path("suites")
_MOST_OTHERS: Final = 20


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Task files, eval files, folders that contain them, "
            "gates.yaml, agents.yaml, prices.yaml, quarantine.yaml, baseline.yaml.",
            parser=options.named_path,
        ),
    ],
    gates: options.GatesOption = "gates.yaml",
) -> int:
    """Check files and list every problem as file:line:column. Run nothing."""
    from passgate.tasks.commands.validate import validate as validate_files
    from passgate.tasks.reports.figures import count

    try:
        found = validate_files(paths, Path(gates), _print_remarks)
    except InputError as error:
        if not output_form.get().as_json:
            raise
        problems = [asdict(problem) for problem in error.problems]
        answer(str, {"problems": problems})
        return error.exit_code
    tasks = f", {count(len(found.tasks), 'task')}" if found.tasks else ""
    text = f"{count(found.files, 'file')}{tasks} checked, no problems"
    document = {"problems": [], "files": found.files, "tasks": [task.name for task in found.tasks]}
    answer(lambda: text, document)
    return 0


def show(
    named: Annotated[
        list[str],
        typer.Argument(
            metavar="TASK",
            help="Task files, eval files, folders that contain them, names of tasks. With --task: a run, or `last`.",
            autocompletion=options.complete_runs,
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="Show a trial of this task of the run: golden/say-yes, or its task_id.",
            autocompletion=options.complete_tasks,
        ),
    ] = None,
    trial: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The number of the trial. Default: the first that did not pass."),
    ] = None,
    gates: options.GatesOption = "gates.yaml",
    output_format: Annotated[Literal["text", "json"], typer.Option("--format", help="`text` or `json`.")] = "text",
) -> None:
    """Print the tasks of files in one form, with names resolved and the defaults of the suite. With --task, print the
    transcript and the grades of a recorded trial.
    """
    if output_format == "json":
        output_form.set(OutputForm(as_json=True))
    if task is None and trial is None:
        _show_tasks(named, gates)
    elif task is None:
        raise UsageError("--trial needs the task: passgate show RUN --task TASK --trial N")
    elif len(named) != 1:
        raise UsageError(f"--task needs one run and not {len(named)} names: passgate show RUN --task TASK")
    else:
        from passgate.tasks.commands.show import recorded_trial
        from passgate.tasks.planning.find_run import find_run
        from passgate.tasks.reports.terminal_trial import trial_report

        run_id, finished, kept, command = recorded_trial(find_run(named[0]), task, trial)
        answer(
            lambda: trial_report(finished, width=width(), color=color(), run_id=run_id, kept=kept, command=command),
            {"run_id": run_id, **finished.model_dump(mode="json")},
        )


def _show_tasks(named: list[str], gates: str) -> None:
    from passgate.tasks.commands.try_task import task_in_suites
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.history.masking import masker_for
    from passgate.tasks.model.task import EvalTask
    from passgate.tasks.reports.tasks import tasks_as_yaml

    policy = policy_or_default(Path(gates))
    paths = [name for name in named if not name or Path(name).exists() or not _SUITES.is_dir()]
    for name in paths:
        _refuse_run(name)
    tasks = list(_read_tasks([options.named_path(name) for name in paths], policy).tasks) if paths else []
    for name in named:
        if name not in paths:
            try:
                tasks.append(task_in_suites(name, _SUITES, policy))
            except UsageError:
                _refuse_run(name)
                raise
    masker = masker_for(policy)
    shown = [EvalTask.model_validate_json(masker.json(task.model_dump_json())) for task in tasks]
    answer(lambda: tasks_as_yaml(shown), shown)


def _refuse_run(name: str) -> None:
    """Raise `UsageError` for the name of a run that no file has."""
    from passgate.tasks.planning.find_run import find_run

    if not name or Path(name).exists():
        return
    try:
        run = find_run(name)
    except PassgateError:
        return
    raise UsageError(f"{name} is not a file, but the run {run}: name a task of it with --task")


def check_graders(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH",
            help="Task files, eval files, folders that contain them. Default: the suites folder.",
            parser=options.named_path,
        ),
    ] = None,
    suites: options.SuitesOption = "suites",
    gates: options.GatesOption = "gates.yaml",
) -> int:
    """Test the graders: good solutions must pass, wrong solutions must fail.

    Good solutions are the reference solutions. Wrong solutions are the counterexamples, mutants (good transcripts
    with one thing broken) and doing nothing.
    """
    from passgate.tasks.commands.check_graders import check_graders as check
    from passgate.tasks.formats.folder import find_root
    from passgate.tasks.formats.loading import load_prices, policy_or_default
    from passgate.tasks.reports.checks import grader_checks_report

    named = list(dict.fromkeys(paths or [Path(suites)]))
    if not paths and not named[0].is_dir():
        raise UsageError(f"no suites folder {suites}: name one with --suites, or make one with `passgate init`")
    policy = policy_or_default(Path(gates))
    tasks: dict[Path, list[EvalTask]] = {}
    problems: dict[Problem, None] = {}
    # Paths may repeat and overlap. A file in two of them must not give its problems twice.
    for path in named:
        loaded = _load_tasks([path], policy)
        problems |= dict.fromkeys(loaded.problems)
        for task in loaded.tasks:
            tasks.setdefault(find_root(Path(task.file), path), []).append(task)
    if problems:
        raise InputError([*problems])
    if not tasks:
        raise UsageError(f"no task files in {', '.join(map(str, named))}: neither tasks nor evals")
    checks = run_until_interrupted(check(tasks, policy, load_prices(Path(gates))))
    answer(lambda: grader_checks_report(checks, width=width(), color=color()), checks)
    # A fault is certain, whatever the checks that could not be measured would show.
    if any(check.findings for check in checks):
        return ExitCode.FAIL
    return ExitCode.INCONCLUSIVE if any(check.unmeasured for check in checks) else ExitCode.PASS


def convert(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Task files, eval files, folders that contain them.", parser=options.named_path
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            metavar="DIALECT",
            help="four-suite: one task file per test. The same eval file as eval: YAML; jsonl: one test per line.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="four-suite: the suites folder. eval, jsonl: the file.")],
    gates: options.GatesOption = "gates.yaml",
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Omit what a task file cannot express; list it on standard error.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> None:
    """Write eval files in another format. Then read the new files and check that they contain the same tests."""
    from passgate.tasks.commands.convert import Destination, TargetFormat
    from passgate.tasks.commands.convert import convert as write
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.figures import count

    if to not in list(TargetFormat):
        raise UsageError(f"--to {to}: expected one of {', '.join(TargetFormat)}")
    policy = policy_or_default(Path(gates))
    _read_tasks(paths, policy)  # for its remarks: `write` reads the files itself
    destination = Destination(TargetFormat(to), out, policy, os.environ, lossy=lossy, overwrite=force)
    converted = write(paths, destination)
    left_out = (f"omitted: {loss}" for loss in converted.left_out)
    warnings = (f"warning: {problem}" for problem in converted.not_comparable)
    for line in (*converted.renamed, *left_out, *warnings):
        write_line(line)
    text = f"{count(converted.tasks, 'task')} written to {count(len(converted.files), 'file')}: {out}"
    answer(lambda: text, converted)


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The schema: task, gates, verdict, ... Default: list them.",
            autocompletion=options.complete_schemas,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a file that passgate reads or writes. Without NAME, list the schemas."""
    from passgate.tasks.formats.schema_check import nearest

    folder, names = files("passgate").joinpath("schema"), options.schema_names()
    texts = {one: folder.joinpath(f"{one}.schema.json").read_text(encoding="utf-8") for one in names}
    if name is not None:
        if name not in texts:
            raise UsageError(f"there is no schema {name!r}{nearest(name, names)}")
        answer(lambda: texts[name], texts[name])
        return
    schemas = {one: json.loads(text) for one, text in texts.items()}
    titles = {
        one: str(schema.get("description") or schema.get("title") or "").partition("\n")[0]
        for one, schema in schemas.items()
    }
    longest = max(map(len, titles))
    text = "\n".join(f"{one:<{longest}}  {title}".rstrip() for one, title in titles.items())
    answer(lambda: text, titles)


def _read_tasks(paths: Sequence[Path], policy: "Policy") -> "Loaded":
    """Read files and folders, and print remarks. Raise `InputError` or `UsageError`."""
    loaded = _load_tasks(paths, policy)
    if loaded.problems:
        raise InputError(loaded.problems)
    return loaded


def _load_tasks(paths: Sequence[Path], policy: "Policy") -> "Loaded":
    """Read files and folders, and print remarks. Raise `UsageError` for a path that does not exist."""
    from passgate.tasks.formats.loading import load_paths

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    loaded = load_paths(paths, policy)
    _print_remarks(loaded)
    return loaded


def _print_remarks(loaded: "Loaded") -> None:
    """Print warnings, tasks that cannot be run, files that are not eval files, and how many tasks name no suite."""
    lines = [f"warning: {warning}" for warning in loaded.warnings]
    lines += [f"cannot be run: {missing}" for missing in loaded.cannot_run]
    lines += [f"not an eval file: {file}" for file in loaded.others[:_MOST_OTHERS]]
    if len(loaded.others) > _MOST_OTHERS:
        lines.append(f"not an eval file: {len(loaded.others) - _MOST_OTHERS} more")
    assumed = sum(task.suite_assumed for task in loaded.tasks)
    if assumed:
        are = "1 task names no suite and is" if assumed == 1 else f"{assumed} tasks name no suite and are"
        lines.append(f"warning: {are} taken as golden: write `suite:`, or put the file into the folder of a suite")
    for line in lines:
        write_line(line)
