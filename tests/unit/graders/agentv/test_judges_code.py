import pytest

from passgate.tasks.graders.agentv.judges import read_code_reply_as_agentv


@pytest.mark.parametrize(
    ("stdout", "stderr", "exit_code", "score"),
    [
        ('{"score": 0.75, "assertions": [{"text": "x", "passed": true}], "details": {"k": 1}}', "", 0, 0.75),
        ('{"assertions": [{"text": "a", "passed": true}, {"text": "b", "passed": false}]}', "", 0, 0.5),
        ('{"score": 0.6, "hits": ["h1"], "misses": ["m1"], "reasoning": "r"}', "", 0, 0.6),
        ('{"score": 1.7}', "", 0, 1),
        ('{"score": -3}', "", 0, 0),
        (f'{{"score": {10**400}}}', "", 0, 1),
        ('{"score": "0.9"}', "", 0, 0),
        ('{"score": true}', "", 0, 0),
        ("{}", "", 0, 0),
        ("[1,2]", "", 0, 1),
        ("0.4", "", 0, 1),
        ("looks fine", "", 0, 1),
        ("", "", 0, 1),
        ("not fine", "", 1, 0),
        ('{"score": 1.0}', "", 1, 0),
        ("", "boom", 2, 0),
        ('{"score": 1.0}', "warn", 0, 1),
        ('{"score": 0.9', "", 0, 1),
        ('log line\n{"score": 0.9}', "", 0, 1),
        ('{"pass": false, "score": 1.0, "reason": "no"}', "", 0, 1),
    ],
)
def test_scores_are_those_of_agentv(stdout: str, stderr: str, exit_code: int, score: float) -> None:
    read = read_code_reply_as_agentv(stdout, stderr, exit_code)
    assert read.score == pytest.approx(score)
    assert all(check.message for check in read.checks)
