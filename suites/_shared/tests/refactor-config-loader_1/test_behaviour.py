"""What the loader did before the refactoring, odd corners included."""

import inspect
from pathlib import Path

import pytest

import settings


def load(folder: Path, text: str, environment: dict[str, str] | None = None) -> dict[str, object]:
    file = folder / "a.conf"
    file.write_text(text, encoding="utf-8")
    return settings.load(file, environment)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("plain text", "plain text"),
        ("", ""),
        ("12", 12),
        ("-7", -7),
        ("007", 7),
        ("1_000", "1_000"),
        ("+5", "+5"),
        ("3.5", "3.5"),
        ("-", "-"),
        ("Yes", True),
        ("TRUE", True),
        ("on", True),
        ("oFF", False),
        ("no", False),
        ("'yes'", "yes"),
        ('"12"', "12"),
        ("''", ""),
        ("'", "'"),
        ("'mixed\"", "'mixed\""),
        ('"a" # b', '"a" # b'),
        ("a = b", "a = b"),
    ],
)
def test_a_value_of_a_file(tmp_path: Path, raw: str, value: object) -> None:
    found = load(tmp_path, f"  Some.KEY ={raw}  \n")
    assert found == {"some.key": value}
    assert type(found["some.key"]) is type(value)


def test_comments_and_empty_lines_are_left_out_and_the_last_setting_counts(tmp_path: Path) -> None:
    assert load(tmp_path, "# a\n\n  # b\nx = 1\nX = 2\n") == {"x": 2}


def test_a_form_feed_ends_a_line(tmp_path: Path) -> None:
    assert load(tmp_path, "x = 1\fy = 2\n") == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n\noops\n", "a.conf:3: expected `key = value`"),
        ("include\n", "a.conf:1: expected `key = value`"),
        (" = 5\n", "a.conf:1: the key is missing"),
        ("x = --5\n", "a.conf:1: --5 is no number"),
        ("include none.conf\n", "none.conf: no such file"),
        ("include = 5\n", "= 5: no such file"),
        ("include a.conf\n", "a.conf: includes itself"),
    ],
)
def test_an_error_of_a_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(settings.SettingsError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == f"{tmp_path}/{message}"


def test_a_file_includes_others_relative_to_itself(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.conf").write_text("x = 10\ny = 20\nz = 30\ninclude c.conf\n")
    (tmp_path / "sub" / "c.conf").write_text("z = 300\nw = 400\n")
    assert load(tmp_path, "x = 1\ninclude sub/b.conf\ny = 2\n") == {"x": 1, "y": 2, "z": 30, "w": 400}


def test_a_file_may_be_included_twice_but_not_by_itself(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("x = 1\n")
    assert load(tmp_path, "include b.conf\ninclude b.conf\n") == {"x": 1}
    (tmp_path / "b.conf").write_text("include a.conf\n")
    with pytest.raises(settings.SettingsError, match="a.conf: includes itself"):
        load(tmp_path, "include b.conf\n")


@pytest.mark.parametrize(
    ("line", "raw", "value"),
    [
        ("n = 1", "8080", 8080),
        ("n = 1", " 1_0 ", 10),
        ("n = no", "1", True),
        ("n = yes", "OFF", False),
        ("n = text", " 12 ", " 12 "),
        ("n = text", "yes", "yes"),
    ],
)
def test_the_environment_keeps_the_type_of_the_file(tmp_path: Path, line: str, raw: str, value: object) -> None:
    found = load(tmp_path, f"{line}\n", {"APP_N": raw, "N": "other", "app_n": "other", "APP_M": "unknown"})
    assert found == {"n": value}
    assert type(found["n"]) is type(value)


@pytest.mark.parametrize(
    ("line", "raw", "message"),
    [("n = 1", "many", "APP_N: many is no number"), ("n = on", "2", "APP_N: expected yes or no")],
)
def test_an_error_of_the_environment(tmp_path: Path, line: str, raw: str, message: str) -> None:
    with pytest.raises(settings.SettingsError) as caught:
        load(tmp_path, f"{line}\n", {"APP_N": raw})
    assert str(caught.value) == message


def test_the_environment_also_goes_before_included_files(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("db.port = 1\n")
    assert load(tmp_path, "include b.conf\n", {"APP_DB_PORT": "2"}) == {"db.port": 2}


def test_the_public_names_are_as_they_were() -> None:
    assert settings.__all__ == ["SettingsError", "load"]
    assert issubclass(settings.SettingsError, ValueError)
    parameters = list(inspect.signature(settings.load).parameters.values())[:2]
    assert [(parameter.name, parameter.default) for parameter in parameters] == [
        ("path", inspect.Parameter.empty),
        ("environment", None),
    ]
