"""What was paid for trials that could not be measured: it is kept, counted and never spent twice."""

import json

import pytest

from tests.cli.metered import GATES, finished_trials, set_up, verdict
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_replies import Status
from tests.upstream_shapes import Says

pytestmark = pytest.mark.slow

LOOKS = Says(calls=[("look", {})])


@pytest.fixture
def metered(project: Project, upstream: ScriptedUpstream) -> Project:
    set_up(project, upstream)
    project.write("gates.yaml", f"{GATES}error_retries: 0\n")
    return project


def test_an_error_after_paid_calls_keeps_its_transcript_and_its_cost(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    upstream.says(LOOKS, LOOKS, Status(401))
    result = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1")
    assert result.returncode == 3, result.stdout + result.stderr
    [finished] = finished_trials(metered)
    assert finished["trial"]["status"] == "error"
    assert [message["role"] for message in finished["transcript"]["messages"]] == ["user", "assistant", "assistant"]
    assert finished["trial"]["metrics"]["cost"] == pytest.approx(0.02)
    measurement = verdict(metered)["measurement"]
    assert measurement["cost"] == measurement["suites"][0]["cost"] == pytest.approx(0.02)
    assert "$0.02" in result.stdout


def test_a_trial_that_the_cap_ended_is_paid_out_of_the_cap_of_the_run_that_goes_on(
    metered: Project, upstream: ScriptedUpstream
) -> None:
    upstream.says(LOOKS)
    first = metered.passgate("run", "ci_merge", "--agent", "bot", "--k", "1", "--max-cost", "0.025")
    assert first.returncode == 3, first.stdout + first.stderr
    [finished] = finished_trials(metered)
    assert (finished["trial"]["status"], len(finished["transcript"]["messages"])) == ("not_run", 3)
    assert verdict(metered)["measurement"]["cost"] == pytest.approx(0.02)
    upstream.says(Says("yes"))
    again = metered.passgate("run", "ci_merge", "--resume", "last", "--max-cost", "0.035")
    assert again.returncode == 0, again.stdout + again.stderr
    last = json.loads((metered.run_folders()[-1] / "journal.jsonl").read_text().splitlines()[-1])["trial"]
    assert (last["status"], last["unmeasured_cost"]) == ("passed", pytest.approx(0.02))
    assert verdict(metered)["measurement"]["cost"] == pytest.approx(0.03)
