"""The nightly run: all four suites, for the trend."""

from passgate.flows.prefect_engine import gate_flow
from passgate.tasks.model.task import GateName

nightly = gate_flow(GateName.NIGHTLY)
