"""Environment variables in eval files."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.evals.read.documents import (
    MAX_ENV_BYTES,
    PLAIN,
    WITH_TEMPLATES,
    EnvFileError,
    interpolate,
    read_env_file,
    variables_for,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${{ A }}", "x"),
        ("${{A}}", "x"),
        ("a ${{ A }}/${{  A  }} b", "a x/x b"),
        ("${{ GONE }}", ""),
        ("${{ YES }}", True),
        ("${{ NO }}", False),
        ("${{ WHOLE }}", 12),
        ("${{ SHARE }}", 0.5),
        ("${{ COMMIT }}", "1e10"),
        ("${{ ZEROS }}", "007"),
        ("${{ LONG }}", "1" * 40),
        ("n=${{ WHOLE }}", "n=12"),
        ("${{ a.b }}", "${{ a.b }}"),
        ("{{ env.A }}", "{{ env.A }}"),
        ("$A", "$A"),
        (3, 3),
        (None, None),
        ({"${{ A }}": ["${{ A }}"]}, {"${{ A }}": ["x"]}),
    ],
)
def test_variables_are_filled_in(text: Any, value: Any) -> None:
    variables = {
        "A": "x", "YES": "true", "NO": "false", "WHOLE": "12", "SHARE": "0.5", "COMMIT": "1e10", "ZEROS": "007",
        "LONG": "1" * 40,
    }  # fmt: skip
    answer, _ = interpolate(text, variables, PLAIN)
    assert answer == value
    assert type(answer) is type(value)


def test_what_is_missing_is_named_once_with_its_place() -> None:
    _, missing = interpolate({"a": [1, "${{ X }} ${{ X }} ${{ Y }} ${{ Z }}"]}, {"Z": ""})
    assert missing == ((("a", 1), "X"), (("a", 1), "Y"))


def test_templates_have_a_spelling_of_their_own() -> None:
    assert interpolate("{{ env.A }}${{ A }}{{ a }}", {"A": "x"}, WITH_TEMPLATES) == ("xx{{ a }}", ())


def test_the_nearest_env_file_wins_and_the_process_over_all(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / ".env").write_text("A=1\nB=1\nC=1\n")
    (tmp_path / "a/b/.env").write_text("B=2\nC=2\n")
    assert variables_for(tmp_path / "a/b", tmp_path, {"C": "3"}) == {"A": "1", "B": "2", "C": "3"}
    assert variables_for(tmp_path / "a/b", tmp_path / "a", {}) == {"B": "2", "C": "2"}


def test_env_files_have_quotes_exports_and_comments(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# note\nexport A='one two'\nB=\"x\\ny\"\nC=plain # note\nD\nE=${A}\n")
    assert read_env_file(file) == {"A": "one two", "B": "x\ny", "C": "plain", "E": "${A}"}
    assert read_env_file(tmp_path / "gone") == {}


@pytest.mark.parametrize("content", [b"A=\xff\n", b"A=1\n" * (MAX_ENV_BYTES // 4 + 1)])
def test_an_env_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(EnvFileError, match="cannot be read") as raised:
        read_env_file(tmp_path / ".env")
    assert raised.value.file == tmp_path / ".env"
