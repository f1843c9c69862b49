"""What processes of a task runner take over from the process that coordinates the run."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

from prefect.context import serialize_context
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.task_runners import ThreadPoolTaskRunner

from passgate.flows import batch_task

ELSEWHERE = "http://127.0.0.1:9/api"


def settings_here() -> tuple[str, int]:
    return str(PREFECT_API_URL.value()), PREFECT_CLIENT_MAX_RETRIES.value()


def test_a_process_has_the_settings_of_the_coordinator_before_its_first_task() -> None:
    with temporary_settings({PREFECT_API_URL: ELSEWHERE, PREFECT_CLIENT_MAX_RETRIES: 2}):
        runner = batch_task.process_task_runner()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, runner._initializer, runner._initargs) as processes:
        assert processes.submit(settings_here).result() == (ELSEWHERE, 2)


def test_only_tasks_of_such_processes_bring_no_settings() -> None:
    with batch_task._settings_for(batch_task.process_task_runner()):
        assert not serialize_context()["settings_context"]
    with batch_task._settings_for(ThreadPoolTaskRunner()):
        assert serialize_context()["settings_context"]
