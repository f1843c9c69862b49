"""The gate of a release: all four suites, strict, and a person's approval, for which `wait_for_sign_off` pauses it."""

from passgate.flows.gate_flow import gate_flow
from passgate.flows.sign_off import wait_for_sign_off
from passgate.tasks.model.task import GateName

release_candidate = gate_flow(GateName.RELEASE_CANDIDATE, wait_for_sign_off)
