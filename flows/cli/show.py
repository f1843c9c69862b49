"""`passgate show`: print tasks the way passgate runs them."""

from pathlib import Path

from passgate.flows.cli import options


def show(
    paths: options.TaskFilesArgument, gates: options.GatesOption = "gates.yaml", as_json: options.JsonOption = False
) -> int:
    """Print the tasks of every format in one form, with names resolved and the defaults of the suite."""
    from passgate.flows.cli.task_files import read_tasks
    from passgate.flows.cli.terminal import say
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.tasks import tasks_as_json, tasks_as_yaml

    loaded = read_tasks(paths, policy_or_default(Path(gates)))
    say(tasks_as_json(loaded.tasks) if as_json else tasks_as_yaml(loaded.tasks))
    return 0
