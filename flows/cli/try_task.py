"""`passgate try`: one trial of one task, with everything that was said, for authors of tasks."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import AgentOption, GatesOption

if TYPE_CHECKING:
    from passgate.tasks.model.trial import FinishedTrial


def try_task(
    task: Annotated[Path, typer.Argument(metavar="TASK", help="The task's file.", show_default=False)],
    agent: AgentOption = "oracle",
    gates: GatesOption = "gates.yaml",
) -> int:
    """Run one trial of one task and print its transcript and grades. Nothing is recorded."""
    from passgate.flows.cli.terminal import color, say, width
    from passgate.tasks.errors import UsageError
    from passgate.tasks.reports.trial import trial_report

    if not task.is_file():
        raise UsageError(f"no task file {task}")
    finished = asyncio.run(_try(task, agent, gates))
    say(trial_report(finished, width=width(), color=color()))
    return _exit_code(finished)


async def _try(file: Path, agent_text: str, gates: str) -> "FinishedTrial":
    from passgate.tasks.budgets.purse import Purse
    from passgate.tasks.errors import InputError
    from passgate.tasks.find import find_agent
    from passgate.tasks.formats.discover import suites_folder_of
    from passgate.tasks.load import load_prices, policy_or_default, validate_paths
    from passgate.tasks.run import open_bench, run_trial

    policy = policy_or_default(Path(gates))
    prices = load_prices(Path(gates))
    tasks, problems = validate_paths([file], policy)
    if problems:
        raise InputError(problems)
    suites = suites_folder_of(file)
    agent = find_agent(agent_text, Path(gates), suites)
    async with open_bench(agent, suites, policy, prices=prices, purse=Purse(), error_retries=0) as bench:
        return await run_trial(tasks[0], 0, bench)


def _exit_code(finished: "FinishedTrial") -> int:
    from passgate.tasks.errors import ExitCode
    from passgate.tasks.model.trial import TrialStatus

    match finished.trial.status:
        case TrialStatus.PASSED:
            return ExitCode.PASS
        case TrialStatus.FAILED:
            return ExitCode.FAIL
        case _:
            return ExitCode.INCONCLUSIVE
