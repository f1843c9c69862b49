"""The gate of a merge: golden, adversarial and failure_replays."""

from passgate.flows.prefect_engine import gate_flow
from passgate.tasks.model.task import GateName

ci_merge = gate_flow(GateName.CI_MERGE)
