"""Tries: the change lets one of many trials be enough: pass@k in place of pass^k.

Must come: FAIL by the metric of the target branch.
"""

from tests.attacks.conftest import GATES, Attacked


def test_policy_with_another_metric(attacked: Attacked) -> None:
    attacked.agent('[ "$(od -An -N1 -tu1 /dev/urandom)" -gt 255 ] && printf ok > a.txt; exit 0\n')
    attacked.write("gates.yaml", GATES.replace("k: 1, metric: pass^k", "k: 9, metric: pass@k"))
    attacked.commit("One is enough")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["gates.yaml"]
