"""Commands that a report tells its reader, ready for a shell."""

import shlex
from collections.abc import Sequence

from passgate.tasks.model.run import RunRequest
from passgate.tasks.reports.escape import printable

_LONGEST_WORD = 500


def show_command(run_id: str, task: str, trial: int) -> tuple[str, ...]:
    """Return the words of the command that shows a trial of a run. `task` is `suite/task_id`."""
    return "passgate", "show", run_id, "--task", task, "--trial", str(trial)


def try_command(task: str, agent: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words of the command that runs a trial of a task again, from the folder of the run."""
    return "passgate", "try", task, "--agent", agent, *options


def try_options(request: RunRequest) -> tuple[str, ...]:
    """Return the options of a run that `passgate try` needs too, as far as they are not the usual ones."""
    options = (("--suites", request.suites, "suites"), ("--gates", request.gates, "gates.yaml"))
    return tuple(word for option, value, usual in options if value != usual for word in (option, value))


def command_lines(words: Sequence[str], width: int) -> tuple[str, ...]:
    """Return a command in lines of at most `width` characters, as far as its options allow. Each line but the last ends
    with the backslash that continues it in a shell; each but the first is indented.
    """
    parts: list[str] = []
    for word in words:
        quoted = shlex.quote(printable(word, _LONGEST_WORD))
        if word.startswith("--") or not parts:
            parts.append(quoted)
        else:
            parts[-1] += f" {quoted}"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + len("  \\") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"  {part}")
    return tuple(lines)
