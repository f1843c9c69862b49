"""Faults planted into correct graders: `passgate check-graders` finds every one of them and names the grader."""

import json
from pathlib import Path

import pytest

from passgate.flows.cli import main
from passgate.tasks.errors import ExitCode
from tests.grader_project import grader_project

ORDER, MAIL = "golden/close-order.yaml", "adversarial/send-mail.yaml"
EVAL, SUMMARY = "failure_replays/answers.eval.yaml", "open_ended/summary_1.yaml"

NO_TRASH = """\
  - type: state_check
    name: no trash
    expect: [{file: trsh, exists: false}]
  - type: output_check"""

BAD_PASSES, GOOD_FAILS, CANNOT_FAIL = "known_bad_passes", "known_good_fails", "cannot_fail"
# By what is planted: the file, a text of it and the one in its place, the grader that is named, its fault; of a file
# that cannot be loaded, the place that is named, and no fault.
PLANTED = {
    "required text removed": (ORDER, "    contains: [total 42]\n", "", "answer", BAD_PASSES),
    "required text is empty": (ORDER, "[total 42]", '[""]', "graders[3].contains[0]", ""),
    "required text is a blank": (MAIL, "[sent]", '[" "]', "answer", CANNOT_FAIL),
    "expression without its end": (ORDER, r"7\b'", "7'", "answer", BAD_PASSES),
    "too strict an answer": (ORDER, "[total 42]", "[Total 42]", "answer", GOOD_FAILS),
    "tests that always succeed": (ORDER, "{tests}/check.py", "{tests}/check.py || true", "hidden tests", CANNOT_FAIL),
    "tests of another file": (ORDER, "{tests}/check.py", "-c 'open(\"orders.json\")'", "hidden tests", BAD_PASSES),
    "analysis that is ignored": (ORDER, "[ruff]", '["ruff check . | tee findings"]', "analysis", CANNOT_FAIL),
    "analysis of another path": (ORDER, "[ruff]", "[ruff]\n    paths: [total.py]", "analysis", BAD_PASSES),
    "wrong path that nothing has": (ORDER, "orders.lock", "order.lock", "state", BAD_PASSES),
    "inverted check": (ORDER, "orders.lock, exists: false", "orders.lock", "state", GOOD_FAILS),
    "wrong value": (ORDER, "equals: closed", "equals: done", "state", GOOD_FAILS),
    "check of another order": (ORDER, 'path: "7"', 'path: "8"', "state", BAD_PASSES),
    "order ignored": (MAIL, "in_order: true", "in_order: false", "calls", BAD_PASSES),
    "forbidden list emptied": (MAIL, "forbidden: [delete_customer]", "forbidden: []", "calls", BAD_PASSES),
    "forbidden tool misspelled": (MAIL, "forbidden: [delete_", "forbidden: [remove_", "calls", BAD_PASSES),
    "required tool is any tool": (
        MAIL,
        'tool: find_customer, params: {customer: "118"}',
        "tool: '*'",
        "calls",
        BAD_PASSES,
    ),
    "no upper bound": (MAIL, ", max: 1}", "}", "calls", BAD_PASSES),
    "words for calls": (MAIL, "contains: [sent]", "not_contains: [delete_customer]", "answer", "refusal_fails"),
    "canary misspelled": (MAIL, "QUILL-7730", "QUILL-773O", "policy", BAD_PASSES),
    "every argument allowed": (MAIL, "allow: [ines@example.org]", "allow: ['*']", "policy", BAD_PASSES),
    "limit that none exceeds": (MAIL, "max_loop_rate: 0.3", "max_loop_rate: 1.0", "detours", CANNOT_FAIL),
    "threshold of 0": (SUMMARY, "type: llm_rubric", "type: llm_rubric\n    threshold: 0", "llm_rubric", CANNOT_FAIL),
    "inverted assertion": (EVAL, "type: not-contains", "type: contains", "no doubt", GOOD_FAILS),
    "no weight": (EVAL, "value: Paris}", "value: Paris, weight: 0}", "city", BAD_PASSES),
    "expression for everything": (EVAL, '"^The capital"', '"^(The capital)?"', "form", CANNOT_FAIL),
    "calls in any number": (EVAL, "mode: exact", "mode: subset", "path", BAD_PASSES),
    "the best member counts": (EVAL, "aggregator: {type: minimum}", "aggregator: {type: maximum}", "both", BAD_PASSES),
    "member without a weight": (
        EVAL,
        "{type: minimum}",
        "{type: weighted_average, weights: {number: 0}}",
        "both",
        BAD_PASSES,
    ),
    "expression for nothing": (MAIL, "contains: [sent]", "matches: '^[^!]*$'", "answer", "mutant_survives"),
    "check of what never was": (ORDER, "  - type: output_check", NO_TRASH, "no trash", "never_failed"),
}


@pytest.fixture(autouse=True)
def no_judge_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASSGATE_JUDGE_BASE_URL", raising=False)
    monkeypatch.delenv("PASSGATE_JUDGE_MODEL", raising=False)


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return grader_project(tmp_path)


def test_correct_graders_have_no_fault(suites: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-graders", "--json"]) == ExitCode.PASS
    checks = json.loads(capsys.readouterr().out)
    assert len(checks) == 5
    for check in checks:
        assert check["known_good"] == "passed"
        assert check["findings"] == check["unmeasured"] == []
        assert check["known_bad"]["right"] == check["known_bad"]["of"] > 1
        assert check["mutants"]["right"] == check["mutants"]["of"] > 0
        assert check["graders"]["right"] == check["graders"]["of"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "old", "new", "named", "fault"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found(
    suites: Path, name: str, old: str, new: str, named: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = suites / name
    text = file.read_text(encoding="utf-8")
    assert old in text, "the fault is planted"
    file.write_text(text.replace(old, new), encoding="utf-8")
    place = str(file.relative_to(Path.cwd()))
    code = main(["check-graders", "--json", place])
    said = capsys.readouterr().out
    if not fault:
        assert code == ExitCode.INCONCLUSIVE
        assert named in said
        return
    assert code == ExitCode.FAIL
    findings = [finding for check in json.loads(said) for finding in check["findings"]]
    assert fault in {finding["fault"] for finding in findings if named in finding["graders"]}
    assert all(finding["remedy"] and finding["line"] > 0 for finding in findings)
    assert {finding["file"] for finding in findings} == {place}
