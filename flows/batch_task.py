"""A batch of trials as a task of Prefect, which runs in a worker of a task runner."""

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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


class ProcessSettings(SettingsContext):
    """Settings of Prefect that tasks do not bring along: its processes have them, and 54 models take long to make."""

    def serialize(self, include_secrets: bool = True) -> dict[str, Any]:
        return {}


def process_task_runner() -> ProcessPoolTaskRunner:
    """Return a task runner with one process of this machine, which takes over the present settings of Prefect."""
    variables = get_current_settings().to_environment_variables(exclude_unset=True)
    return ProcessPoolTaskRunner(max_workers=1, initializer=_take_over, initargs=(variables,))


def _take_over(settings: Mapping[str, str]) -> None:
    """Give this process settings of Prefect. A batch removes those from the environment that the run was not given."""
    os.environ.update(settings)
    refresh_global_settings_context()


def submit(runner: "TaskRunner[Any]", batch: RemoteBatch) -> Any:
    """Submit a batch to a task runner, inside of a flow run. Return the future of its result. Both are JSON."""
    own_processes = isinstance(runner, ProcessPoolTaskRunner)
    parameters = {
        "name": batch.name,
        "batch": batch.model_dump_json(),
        "folder": str(Path.cwd()),
        "settings": _settings() if own_processes else None,
    }
    flow_run, settings = FlowRunContext.get(), SettingsContext.get()
    with ExitStack() as contexts:
        # A task run with a tag asks the server for a slot of concurrency before it begins.
        contexts.enter_context(TagsContext(current_tags=set()))
        if settings is not None and own_processes:
            contexts.enter_context(ProcessSettings(profile=settings.profile, settings=settings.settings))
        if flow_run is not None:
            # The flow goes to the worker as well, and its hooks cannot.
            flow = Flow(_do_nothing, name=flow_run.flow.name if flow_run.flow else None)
            contexts.enter_context(flow_run.model_copy(update={"flow": flow}))
        return runner.submit(batch_of_trials, parameters)


@task(name="batch", task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def batch_of_trials(name: str, batch: str, folder: str, settings: Sequence[str] | None) -> str:
    """Run a batch, in the folder of the run if this machine has it, with no variables of Prefect but `settings`.

    The task runner adds others, which agents must not get.
    """
    if Path(folder).is_dir():
        os.chdir(folder)
    for variable in [] if settings is None else set(_settings()).difference(settings):
        del os.environ[variable]
    if threading.current_thread() is threading.main_thread():
        # ^C of a terminal reaches all of its processes, and the coordinator ends the batch.
        signal.signal(signal.SIGINT, _ignore)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return run_batch(RemoteBatch.model_validate_json(batch), shared_limit).model_dump_json()


def _settings() -> list[str]:
    return [name for name in os.environ if name.startswith("PREFECT_")]


def _ignore(_kind: int, _frame: object) -> None:
    """Do nothing. The processes of agents would inherit SIG_IGN."""


def _do_nothing() -> None:
    """Stand in for the function of the flow."""
