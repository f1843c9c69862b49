import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.unit.graders.trials import Graded, said

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
LANGUAGES = ["python", pytest.param("javascript", marks=needs_node)]


def javascript(*fields: str) -> Any:
    return pytest.param("javascript", *fields, marks=needs_node)


@pytest.fixture
def run(graded: Graded) -> Graded:
    async def ask(language: str, value: str, answer: str = "Paris", **fields: Any) -> Any:
        inputs = {"prompt": "Hi.", "vars": {"city": "Paris"}}
        return await graded({"type": language, "value": value, **fields}, said(answer), inputs=inputs)

    return ask


@pytest.mark.parametrize(
    ("language", "value"),
    [
        ("python", "'Paris' in output"),
        ("python", "context['vars']['city'] in output"),
        ("python", "context['output'] == output"),
        ("python", "  \n  len(output) == 5\n"),
        ("python", "found = 'Paris' in output\nreturn found"),
        ("python", "import json\nif output:\n    return True\nreturn json.loads('0')"),
        ("python", "return 'Paris' in output"),
        ("python", "print('seen') or True"),
        javascript("output.includes('Paris')"),
        javascript("output.includes('Paris');"),
        javascript("output.includes(context.vars.city) // yes"),
        javascript("const found = output.length === 5;\nreturn found;"),
        javascript("return output.length === 5"),
        javascript("Promise.resolve(true)"),
        javascript("console.log('seen') === undefined"),
        javascript("(process.stdout.write('seen'), true)"),
        javascript("require('path').basename('a/b') === 'b'"),
    ],
)
async def test_an_expression_or_a_body_says_whether_the_answer_is_good(language: str, value: str, run: Graded) -> None:
    result = await run(language, value)
    assert (result.error, result.passed, result.score) == (None, True, 1)


@pytest.mark.parametrize(
    ("language", "value", "answer", "said"),
    [
        ("python", "'Paris' in output", "Rome", "'Paris' in output"),
        ("python", "{'pass': False, 'score': 1, 'reason': 'no'}", "Paris", "no"),
        javascript("output.includes('Paris')", "Rome", "output.includes('Paris')"),
        javascript("({pass: false, score: 1, reason: 'no'})", "Paris", "no"),
    ],
)
async def test_a_bad_answer_has_nothing(language: str, value: str, answer: str, said: str, run: Graded) -> None:
    result = await run(language, value, answer)
    assert (result.passed, result.score, result.checks[0].passed) == (False, 0, False)
    assert said in result.checks[0].message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("score", "fields", "passed"),
    [
        ("0.4", {}, False),
        ("0.4", {"threshold": 0.4}, True),
        ("0.4", {"threshold": 0.4, "min_score": 0.9}, True),
        ("0.9", {"threshold": 0.95}, False),
        ("0.5", {"min_score": 0.5}, True),
    ],
)
async def test_a_number_is_a_score(score: str, fields: Any, passed: bool, language: str, run: Graded) -> None:
    result = await run(language, score, **fields)
    assert (result.passed, result.score) == (passed, float(score))


@pytest.mark.parametrize(
    ("language", "value", "error"),
    [
        ("python", "nothing(output)", "the script raised: "),
        ("python", "1 +", "the script raised: "),
        ("python", "eval('1 +')", "the script raised: "),
        ("python", "7", "must be a number from 0 to 1"),
        ("python", "None", "must be a number from 0 to 1"),
        ("python", "'yes'", "must be a number from 0 to 1"),
        ("python", "float('nan')", "the script's result is unusable"),
        ("python", "{}", "it has no `score`"),
        javascript("nothing(output)", "the script raised: "),
        javascript("1 +", "the script raised: "),
        javascript("undefined", "must be a number from 0 to 1"),
        javascript("process.exit(0)", "the script's result is unusable"),
        javascript("output.length", "must be a number from 0 to 1"),
    ],
)
async def test_a_script_that_fails_measures_nothing(language: str, value: str, error: str, run: Graded) -> None:
    assert error in (await run(language, value)).error


@pytest.mark.parametrize(
    "answer", ["'); process.exit(0); ('", '"""\nimport sys; sys.exit(0)\n"""', "`${process.exit()}`", "\ud800", "\0"]
)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_answer_is_never_code(language: str, answer: str, run: Graded) -> None:
    value = {"python": "len(output) == 0"}.get(language, "output.length === 0")
    result = await run(language, value, answer)
    assert (result.error, result.score) == (None, 0)


async def test_javascript_needs_node(run: Graded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await run("javascript", "true")
    assert result.error == "`javascript` needs Node.js, which is not installed: install it from https://nodejs.org"
