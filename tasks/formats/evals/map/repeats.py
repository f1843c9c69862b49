"""How often a test is tried, and how its trials decide it."""

from passgate.tasks.formats.evals.map.runtime import Runtime
from passgate.tasks.formats.evals.read.node import (
    Complaints,
    Key,
    Keys,
    Parts,
    as_count,
    as_number,
    as_one_of,
    take_apart,
)
from passgate.tasks.formats.schema_check import Kind
from passgate.tasks.model.task import Metric, Trials

STRATEGIES = {
    "pass_all": Metric.PASS_HAT_K,
    "pass_any": Metric.PASS_AT_K,
    "pass_at_k": Metric.PASS_AT_K,
    "mean": Metric.MEAN,
    "confidence_interval": Metric.CONFIDENCE_INTERVAL,
}
REPEAT_KEYS: Keys = {
    "count": Key((Kind.WHOLE,), needed=True),
    "strategy": Key((Kind.TEXT,), says=f"{', '.join(STRATEGIES)}; as its suite decides when not given."),
    "cost_limit_usd": Key((Kind.NUMBER,)),
    "early_exit": Key((Kind.TRUTH,)),
}
_MOST = 1000
AS_ITS_SUITE = Trials()


def trials_of(runtime: Runtime, complaints: Complaints) -> Trials:
    """The trials of a test; what it does not say is what its suite says."""
    said = runtime.said(("repeat", "trials", "runs"), complaints)
    if said is None:
        return AS_ITS_SUITE
    if not isinstance(said.value, dict):
        return Trials(k=as_count(said, complaints, least=1, most=_MOST))
    parts = take_apart(said, REPEAT_KEYS, complaints)
    as_number(parts.get("cost_limit_usd"), complaints)
    k = as_count(parts.get("count"), complaints, least=1, most=_MOST)
    metric = _metric(parts, complaints)
    if metric is Metric.CONFIDENCE_INTERVAL and k == 1:
        complaints.problems.append(said.problem("a confidence interval needs a count of 2 or more"))
        return Trials(k=k)
    return Trials(k=k, metric=metric)


def _metric(repeat: Parts, complaints: Complaints) -> Metric | None:
    name = as_one_of(repeat.get("strategy"), tuple(STRATEGIES), complaints)
    return None if name is None else STRATEGIES[name]
