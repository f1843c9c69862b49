"""Assertions of a repository: programs of `.agentv/assertions/`, whose names are types, run as AgentV runs them."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from passgate.tasks.formats.evals.map.forms import MAPPING, Draft, Drafting, Form
from passgate.tasks.formats.evals.map.judge_forms import program_config
from passgate.tasks.formats.evals.map.reading import Reading
from passgate.tasks.formats.evals.read.node import Key, Node, Parts
from passgate.tasks.formats.evals.read.paths import PROJECT_MARK, Ground, first_of, upwards
from passgate.tasks.model.assertions import CodeGrader

_RUN = ("bun", "run")
_ASSERTIONS = ("assertions",)
_GRADERS = ("graders", "judges")
_SUFFIXES = (".ts", ".js", ".mts", ".mjs")
_LONGEST_NAME = 100


def custom_assertion(kind: Node, name: str, ground: Ground) -> Form | None:
    """The form of a type that is the name of a program near its file; `None` where there is no such program.

    AgentV looks into `.agentv/assertions` of the file's folder and of every folder above it, and then into
    `.agentv/graders` and `.agentv/judges`. The nearest counts, and `_` in a type stands for `-`.
    """
    if not name.replace("-", "").replace("_", "").isalnum() or len(name) > _LONGEST_NAME:
        return None
    program = first_of(_candidates(name, kind.folder, ground), ground, Path.is_file)
    if program is None:
        return None
    keys = {"config": Key(MAPPING, says="Given to the program as `config`, with the keys beside it.")}
    return Form((), CodeGrader, keys, _draft_of(program, kind), further=True)


def _candidates(name: str, folder: Path, ground: Ground) -> Iterator[Path]:
    above, stems = upwards(folder, ground.repository), dict.fromkeys((name, name.replace("_", "-")))
    for places in (_ASSERTIONS, _GRADERS):
        for parent, place, stem, suffix in product(above, places, stems, _SUFFIXES):
            yield parent / PROJECT_MARK / place / f"{stem}{suffix}"


def _draft_of(program: Path, kind: Node) -> Drafting:
    folder = program.parents[2]

    def draft(parts: Parts, reading: Reading) -> Draft:
        options = {
            "name": kind,
            "command": kind.with_value([*_RUN, program.relative_to(folder).as_posix()]),
            "cwd": kind.with_value(reading.ground.relative(folder)),
        }
        return Draft(CodeGrader, "code_grader", options | program_config(parts))

    return draft
