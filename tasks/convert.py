"""Convert: tasks of any dialect in, files of one dialect out. What is written is read again before it counts."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.discover import suites_folder_of
from passgate.tasks.formats.evals.lines import sidecar_names
from passgate.tasks.formats.evals.paths import ground_of
from passgate.tasks.formats.evals.said import LeavesError, Place, Saying, said_task
from passgate.tasks.formats.evals.writing.differences import differences
from passgate.tasks.formats.evals.writing.file_names import file_names
from passgate.tasks.formats.evals.writing.files import eval_document, eval_text, lines_texts
from passgate.tasks.formats.evals.writing.yaml_text import yaml_text
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.formats.staging import Staged, staging
from passgate.tasks.formats.task_files import Found, SourceTask, task_of_file, tasks_of_paths, tests_of_file
from passgate.tasks.model.policy import Policy


class Dialect(StrEnum):
    """What tasks can be written as."""

    FOUR_SUITE = "four-suite"
    EVAL = "eval"
    JSONL = "jsonl"


@dataclass(frozen=True)
class Converted:
    """What was written."""

    tasks: int
    files: tuple[Path, ...]
    left_out: tuple[Problem, ...] = ()
    """What the dialect cannot say, at the tasks that say it."""
    renamed: tuple[tuple[str, str], ...] = ()
    """Tests that had the id of another: from which file's which test, and what it is called now."""
