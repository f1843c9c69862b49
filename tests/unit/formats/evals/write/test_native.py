"""What only passgate knows of a task."""

from passgate.tasks.formats.evals.write.tests import only_passgates
from tests.unit.formats.evals.write.test_tests import TASK


def test_a_test_that_says_all_without_it_has_no_such_key() -> None:
    assert only_passgates(TASK, is_conversation=False) == {}


def test_everything_that_other_tools_do_not_know_is_in_it() -> None:
    own = {
        "tracked_metrics": ["tokens"],
        "gates": {"nightly": False},
        "reference": {"solution": {"script": "./s.sh"}},
        "trials": {"metric": "pass@k"},
    }
    environment = {"sandbox": "shop", "budgets": {"max_steps": 3, "max_seconds": 9}, "workspace": {}}
    said = {**TASK, **own, "environment": environment, "inputs": {"prompt": "Hi", "files": ["a"]}, "scoring": {}}
    written = {
        "inputs": {"files": ["a"]},
        "environment": {"sandbox": "shop", "budgets": {"max_steps": 3}},
        **own,
        "scoring": {"rule": "all"},
    }
    assert only_passgates(said, is_conversation=False) == {"passgate": written}
