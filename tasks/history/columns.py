"""The columns of trials and of summaries, from schema/trial.schema.json and summary.schema.json, typed for Arrow."""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa

from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.run import RunContext
from passgate.tasks.model.trial import Trial

SCHEMA_VERSION = 6
SUMMARY_VERSION = 1
PARTITIONS = ("suite", "day")  # Columns that were folders before version 6, as in `suite=golden/day=2026-01-31/`

_OF_TRIAL = (
    *("task_id", "task_digest", "grader_digest", "file", "line", "model", "trial", "k", "score", "reason", "attempts"),
    *("isolation", "started_at", "transcript_digest", "judge_cost", "unmeasured_cost"),
)
_OF_GRADE = ("name", "type", "score", "passed")
_PLAIN = {"integer": pa.int64(), "number": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}


@cache
def arrow_schema() -> pa.Schema:
    """Return all columns of trials with their types and, as metadata, their meanings."""
    return _schema("trial", SCHEMA_VERSION)


@cache
def summary_schema() -> pa.Schema:
    """Return all columns of summaries with their types and, as metadata, their meanings."""
    return _schema("summary", SUMMARY_VERSION)


def _schema(name: str, version: int) -> pa.Schema:
    text = files("passgate").joinpath("schema", f"{name}.schema.json").read_text(encoding="utf-8")
    columns = [
        pa.field(column, _type(kind), metadata={"description": kind["description"]})
        for column, kind in json.loads(text)["properties"].items()
    ]
    return pa.schema(columns, {"passgate": f"{name} {version}"})


def _type(schema: dict[str, Any]) -> pa.DataType:
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = next(name for name in names if name != "null")
    if kind == "array":
        return pa.list_(_type(schema["items"]))
    if kind == "object":
        return pa.struct([pa.field(name, _type(inner)) for name, inner in schema["properties"].items()])
    if schema.get("format") == "date-time":
        return pa.timestamp("us", tz="UTC")
    return _PLAIN[kind]


def rows(trials: Iterable[Trial], context: RunContext) -> list[dict[str, Any]]:
    """Return the trials of a run as rows with every column."""
    of_run = {
        "schema_version": SCHEMA_VERSION,
        "run_id": context.run_id,
        "gate": str(context.gate),
        "day": f"{context.created_at:%Y-%m-%d}",
        "agent": str(context.agent),
        "agent_digest": context.agent_digest,
        "git_commit": context.revision.commit,
        "git_branch": context.revision.branch,
        "git_dirty": context.revision.dirty,
        "passgate_version": context.passgate_version,
        "policy_digest": policy_digest(context.policy),
    }
    return [of_run | _trial_columns(trial) for trial in trials]


def trials_table(trials: Iterable[Trial], context: RunContext) -> pa.Table:
    """Return the trials of a run as the history stores them."""
    return pa.Table.from_pylist(rows(trials, context), schema=arrow_schema())


def policy_digest(policy: Policy) -> str:
    """Return the SHA-256 of a whole policy."""
    return json_digest(policy.model_dump(mode="json"))


def _trial_columns(trial: Trial) -> dict[str, Any]:
    return {
        **{name: getattr(trial, name) for name in _OF_TRIAL},
        "suite": str(trial.suite),
        "confirming": trial.trial >= trial.k,
        "metric": str(trial.metric),
        "status": str(trial.status),
        "violations": [f"{violation.rule}: {violation.message}" for violation in trial.violations],
        "grades": [
            {name: getattr(grade, name) for name in _OF_GRADE} | {"error": grade.error or "", "votes": [*grade.votes]}
            for grade in trial.grades
        ],
        **trial.metrics.model_dump(),
    }
