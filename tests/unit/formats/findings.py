"""What is found in a task file of the right shape."""

from pathlib import Path
from typing import Any

from passgate.tasks.formats.document import format_path
from passgate.tasks.formats.rules import findings
from passgate.tasks.model.task import TaskFile
from tests.builders import SHIPPED, task_document


def findings_of(root: Path, **changes: Any) -> list[str]:
    """As `path: message`, for a task of this suites folder."""
    task = TaskFile.model_validate(task_document(**changes))
    return [f"{format_path(path)}: {text}" for path, text in findings(task, root / "task.yaml", root, SHIPPED)]
