"""A batch of trials as a task of Prefect, which runs in a worker of a task runner."""

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from prefect import Flow, task
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext, SettingsContext, TagsContext, refresh_global_settings_context
from prefect.settings import get_current_settings
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner

from passgate.flows.concurrency_limit import shared_limit
from passgate.tasks.execution.remote_batch import run_batch
from passgate.tasks.model.run import RemoteBatch


class _SettingsOfProcess(SettingsContext):
    """Settings of Prefect that tasks do not bring along, because the processes of a task runner have them.

    Prefect would make the 54 models of its settings anew for each task: that takes longer than all else that it does
    in the process.
    """

    def serialize(self, include_secrets: bool = True) -> dict[str, Any]:
        return {}


def process_task_runner() -> ProcessPoolTaskRunner:
    """Return a task runner with one process of this machine, which takes over the settings of now."""
    variables = get_current_settings().to_environment_variables(exclude_unset=True)
    return ProcessPoolTaskRunner(max_workers=1, initializer=_take_over, initargs=(variables,))


def submit(runner: "TaskRunner[Any]", batch: RemoteBatch) -> Any:
    """Submit a batch to a task runner, inside of a flow run. Return the future of its result, as JSON: Prefect looks
    into the models that it is given, for futures.
    """
    parameters = {
        "name": batch.name,
        "batch": batch.model_dump_json(),
        "folder": str(Path.cwd()),
        "settings": _settings() if isinstance(runner, ProcessPoolTaskRunner) else None,
    }
    flow_run = FlowRunContext.get()
    # A task run with a tag asks the server for a slot of concurrency before it begins.
    with TagsContext(current_tags=set()), _settings_for(runner):
        if flow_run is None:
            return runner.submit(batch_of_trials, parameters)
        # The flow goes to the worker as well, and its hooks cannot.
        with flow_run.model_copy(update={"flow": Flow(_nothing, name=flow_run.flow.name if flow_run.flow else None)}):
            return runner.submit(batch_of_trials, parameters)


@task(name="batch", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def batch_of_trials(name: str, batch: str, folder: str, settings: Sequence[str] | None) -> str:
    """Run a batch, in the folder that the run was started in where this machine has it.

    `settings` are the variables of Prefect in the environment of the run, where the task runner has added others: those
    are none of the agents' business.
    """
    _as_worker(folder, settings)
    return run_batch(RemoteBatch.model_validate_json(batch), shared_limit).model_dump_json()


def _settings_for(runner: "TaskRunner[Any]") -> AbstractContextManager[object]:
    current = SettingsContext.get()
    if current is None or not isinstance(runner, ProcessPoolTaskRunner):
        return nullcontext()
    return _SettingsOfProcess(profile=current.profile, settings=current.settings)


def _take_over(settings: Mapping[str, str]) -> None:
    """Give this process settings of Prefect. A batch removes those from the environment that the run was not given."""
    os.environ.update(settings)
    refresh_global_settings_context()


def _settings() -> list[str]:
    return [name for name in os.environ if name.startswith("PREFECT_")]


def _as_worker(folder: str, settings: Sequence[str] | None) -> None:
    if Path(folder).is_dir():
        os.chdir(folder)
    for name in [] if settings is None else set(_settings()).difference(settings):
        del os.environ[name]
    if threading.current_thread() is threading.main_thread():
        # ^C of a terminal comes to all of its processes, and the coordinator ends the batch.
        signal.signal(signal.SIGINT, _ignore)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _ignore(_kind: int, _frame: object) -> None:
    """Not SIG_IGN, which the processes of agents would inherit."""


def _nothing() -> None:
    """Stand in for the function of the flow."""
