import shutil
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.assertions import ScriptAssertion
from passgate.tasks.model.grade import Grade
from tests.unit.graders.trials import Graded, said

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
LANGUAGES = ["python", pytest.param("javascript", marks=needs_node)]


@pytest.fixture
def run(graded: Graded) -> Any:
    async def ask(language: str, value: str, answer: str = "Paris", **fields: Any) -> Grade:
        return await graded(
            ScriptAssertion(type=language, value=value, **fields),
            said(answer),
            inputs={"prompt": "Hi.", "vars": {"city": "Paris"}},
        )  # type: ignore[arg-type]

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
        pytest.param("javascript", "output.includes('Paris')", marks=needs_node),
        pytest.param("javascript", "output.includes('Paris');", marks=needs_node),
        pytest.param("javascript", "output.includes(context.vars.city) // yes", marks=needs_node),
        pytest.param("javascript", "const found = output.length === 5;\nreturn found;", marks=needs_node),
        pytest.param("javascript", "return output.length === 5", marks=needs_node),
        pytest.param("javascript", "Promise.resolve(true)", marks=needs_node),
        pytest.param("javascript", "console.log('seen') === undefined", marks=needs_node),
        pytest.param("javascript", "(process.stdout.write('seen'), true)", marks=needs_node),
        pytest.param("javascript", "require('path').basename('a/b') === 'b'", marks=needs_node),
    ],
)
async def test_an_expression_or_a_body_says_whether_the_answer_is_good(language: str, value: str, run: Any) -> None:
    result = await run(language, value)
    assert (result.error, result.passed, result.score) == (None, True, 1)


@pytest.mark.parametrize(
    ("language", "value"),
    [("python", "'Paris' in output"), pytest.param("javascript", "output.includes('Paris')", marks=needs_node)],
)
async def test_a_bad_answer_has_nothing(language: str, value: str, run: Any) -> None:
    result = await run(language, value, answer="Rome")
    assert (result.passed, result.score) == (False, 0)
    assert result.checks[0].passed is False
    assert value in result.checks[0].message


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_number_is_a_score_and_passes_from_the_threshold_on(language: str, run: Any) -> None:
    assert ((await run(language, "0.4")).passed, (await run(language, "0.4")).score) == (False, 0.4)
    assert (await run(language, "0.4", threshold=0.4)).passed
    assert (await run(language, "0.4", threshold=0.4, min_score=0.9)).passed
    assert not (await run(language, "0.9", threshold=0.95)).passed
    assert (await run(language, "0.5", min_score=0.5)).passed


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_object_is_a_reply(language: str, run: Any) -> None:
    literal = {"python": "{'pass': False, 'score': 1, 'reason': 'no'}"}
    value = literal.get(language, "({pass: false, score: 1, reason: 'no'})")
    result = await run(language, value)
    assert (result.passed, result.score) == (False, 0)
    assert "no" in result.checks[0].message


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
        pytest.param("javascript", "nothing(output)", "the script raised: ", marks=needs_node),
        pytest.param("javascript", "1 +", "the script raised: ", marks=needs_node),
        pytest.param("javascript", "undefined", "must be a number from 0 to 1", marks=needs_node),
        pytest.param("javascript", "process.exit(0)", "the script's result is unusable", marks=needs_node),
        pytest.param("javascript", "output.length", "must be a number from 0 to 1", marks=needs_node),
    ],
)
async def test_a_script_that_fails_measures_nothing(language: str, value: str, error: str, run: Any) -> None:
    result = await run(language, value)
    assert error in result.error
    assert (result.passed, result.score) == (False, None)


@pytest.mark.parametrize(
    "answer", ["'); process.exit(0); ('", '"""\nimport sys; sys.exit(0)\n"""', "`${process.exit()}`", "\ud800", "\0"]
)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_answer_is_never_code(language: str, answer: str, run: Any) -> None:
    value = {"python": "len(output) == 0"}.get(language, "output.length === 0")
    result = await run(language, value, answer=answer)
    assert (result.error, result.score) == (None, 0)


async def test_javascript_needs_node(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await run("javascript", "true")
    assert result.error == ("`javascript` needs Node.js, which is not installed: install it from https://nodejs.org")
