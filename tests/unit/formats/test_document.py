"""YAML from strangers: read safely, and every part of it with its place."""

import os
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.document import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_NODES,
    Document,
    Place,
    format_path,
    read_document,
)

CPU_SECONDS = 20
"""No file may take more of a processor."""


@pytest.fixture
def read(tmp_path: Path):
    def _read(content: str | bytes) -> Document:
        file = tmp_path / "file.yaml"
        file.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
        started = time.process_time()
        document = read_document(file, "file.yaml")
        assert time.process_time() - started < CPU_SECONDS
        return document

    return _read


def data_of(document: Document) -> Any:
    assert document.problems == []
    return document.data


def problem_of(document: Document) -> str:
    (problem,) = document.problems
    assert str(problem).startswith("file.yaml:")
    return str(problem).removeprefix("file.yaml:")


def test_data_is_what_yaml_says(read) -> None:
    document = read("""
        text: plain
        number: 1
        share: 0.5
        exponent: 1.0e+3
        flag: true
        nothing: null
        empty:
        list: [1, two, {three: 3}]
        block: |
          line
    """)
    assert data_of(document) == {
        "text": "plain",
        "number": 1,
        "share": 0.5,
        "exponent": 1000.0,
        "flag": True,
        "nothing": None,
        "empty": None,
        "list": [1, "two", {"three": 3}],
        "block": "line\n",
    }


def test_every_key_and_value_has_its_place(read) -> None:
    document = read("a: 1\nbeta:\n  - x\n  - {c: 2}\n")
    assert document.keys == {
        ("a",): Place(1, 1),
        ("beta",): Place(2, 1),
        ("beta", 1, "c"): Place(4, 6),
    }
    assert document.values == {
        (): Place(1, 1),
        ("a",): Place(1, 4),
        ("beta",): Place(3, 3),
        ("beta", 0): Place(3, 5),
        ("beta", 1): Place(4, 5),
        ("beta", 1, "c"): Place(4, 9),
    }
    document = read("base: &base {a: 1}\none:\n  <<: *base\n")
    assert document.keys[("one", "a")] == Place(1, 14)


def test_a_problem_stands_at_the_nearest_part_that_is_there(read) -> None:
    document = read("a:\n  b: [1]\n")
    assert str(document.problem(("a", "b", 0), "wrong")) == "file.yaml:2:7: a.b[0]: wrong"
    assert str(document.problem(("a", "b", 5, "c"), "wrong")) == "file.yaml:2:6: a.b[5].c: wrong"
    assert str(document.problem(("a", "b"), "wrong", at_key=True)) == "file.yaml:2:3: a.b: wrong"
    assert str(document.problem((), "wrong")) == "file.yaml:1:1: wrong"


@pytest.mark.parametrize(
    ("path", "text"),
    [((), ""), (("a",), "a"), (("a", 0, "b", 1, 2), "a[0].b[1][2]"), ((0, "a"), "[0].a")],
)
def test_how_a_path_is_written(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text


def test_dates_and_versions_stay_text(read) -> None:
    document = read("day: 2026-01-31\nbad_day: 2026-99-99\ntime: 2026-01-31T12:00:00Z\nversion: 1.2.3\nequals: =\n")
    assert data_of(document) == {
        "day": "2026-01-31",
        "bad_day": "2026-99-99",
        "time": "2026-01-31T12:00:00Z",
        "version": "1.2.3",
        "equals": "=",
    }


def test_keys_are_text_whatever_they_look_like(read) -> None:
    document = read("on: 1\n2: 2\n3.5: 3\nnull: 4\n? 2026-01-31\n: 5\n")
    assert data_of(document) == {"on": 1, "2": 2, "3.5": 3, "null": 4, "2026-01-31": 5}
    assert data_of(read('"<<": 1')) == {"<<": 1}


def test_the_truths_of_yaml_1_1_are_truths_and_large_numbers_numbers(read) -> None:
    assert data_of(read("[yes, No, on, OFF, y, n, 'no']")) == [True, False, True, False, "y", "n", "no"]
    assert data_of(read("a: 123456789012345678901234567890")) == {"a": 123456789012345678901234567890}
    assert data_of(read('a: "\\x07\\0"')) == {"a": "\x07\x00"}


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n", "---\n", "null\n"])
def test_an_empty_file_is_nothing(read, content: str) -> None:
    assert data_of(read(content)) is None


def test_a_byte_order_mark_and_windows_lines_are_read_over(read) -> None:
    document = read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert data_of(document) == {"a": 1, "b": 2}
    assert document.keys[("b",)] == Place(2, 1)


def test_merges_give_a_mapping_what_it_does_not_say_itself(read) -> None:
    document = read("""
        base: &base {a: 1, b: 2}
        more: &more {b: 3, c: 4}
        one: {<<: *base, a: own}
        first_wins: {<<: [*base, *more]}
        chained: {<<: {<<: *more, d: 5}, e: 6}
        behind: {a: own, <<: *base}
    """)
    data = data_of(document)
    assert data["one"] == {"a": "own", "b": 2}
    assert data["first_wins"] == {"a": 1, "b": 2, "c": 4}
    assert data["chained"] == {"b": 3, "c": 4, "d": 5, "e": 6}
    assert data["behind"] == {"a": "own", "b": 2}
    assert data_of(read("a: &a {b: 1, <<: *a}\n")) == {"a": {"b": 1}}


@pytest.mark.parametrize("content", ["<<: 3", "<<: [{a: 1}, 3]", "a: &a [1]\n<<: *a"])
def test_what_is_no_mapping_cannot_be_merged(read, content: str) -> None:
    assert problem_of(read(content)).endswith("`<<` takes a mapping or a list of mappings")


def test_the_same_value_may_be_used_again(read) -> None:
    assert data_of(read("a: &a [1]\nb: *a\nc: {d: *a, e: *a}\n")) == {"a": [1], "b": [1], "c": {"d": [1], "e": [1]}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1: a: the key stands here a second time (first in line 1)"),
        ("a:\n  b: 1\n  'b': 2\n", "3:3: a.b: the key stands here a second time (first in line 2)"),
        ("- {a: 1, a: 1}\n", "1:10: [0].a: the key stands here a second time (first in line 1)"),
        ("a: {<<: {b: 1}, <<: {c: 1}}", "1:17: a.<<: the key stands here a second time (first in line 1)"),
        ("1: a\n'1': b\n", "2:1: 1: the key stands here a second time (first in line 1)"),
    ],
)
def test_a_key_that_stands_twice_is_a_problem(read, content: str, problem: str) -> None:
    assert problem_of(read(content)) == problem


def test_every_problem_of_a_file_is_found(read) -> None:
    document = read("a: !mine 1\nb: .nan\nb: 2\nc: !!int x\n")
    assert sorted((problem.line, problem.path) for problem in document.problems) == [
        (1, "a"),
        (2, "b"),
        (3, "b"),
        (4, "c"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system [id]",
        "!!python/name:os.system",
        "!mine 1",
        "!!set {a}",
        "!!binary aGk=",
        "!!omap [a: 1]",
        "!!map text",
        "!!seq text",
        "!!str [1]",
        "!!int {a: 1}",
    ],
)
def test_tags_are_refused(read, value: str) -> None:
    document = read(f"a: {value}\n")
    assert document.data == {"a": None}
    assert problem_of(document).startswith("1:4: a: the tag ")


@pytest.mark.parametrize("value", ["!!str 5", "!!int '5'", "!!float 5", "!!seq [1]", "!!map {a: 1}", "! 5"])
def test_tags_that_say_what_is_there_are_not(read, value: str) -> None:
    assert read(f"a: {value}\n").problems == []


@pytest.mark.parametrize("key", ["[a]", "{a: 1}", "!mine a", "!!python/name:os.system ''"])
def test_a_key_must_be_a_text(read, key: str) -> None:
    assert problem_of(read(f"b: 1\n? {key}\n: 1\n")) == "2:3: a key must be a plain text"


@pytest.mark.parametrize("value", ["!!int ''", "!!int x", "!!float ''", "!!float x", "!!bool maybe", "!!int 0x"])
def test_a_number_or_truth_that_is_none_is_a_problem(read, value: str) -> None:
    assert problem_of(read(f"a: {value}\n")).startswith("1:4: a: not a valid ")


@pytest.mark.parametrize("value", [".nan", ".NaN", ".inf", "-.inf", "1.0e+999"])
def test_a_number_must_be_finite(read, value: str) -> None:
    assert problem_of(read(f"a: {value}\n")) == "1:4: a: not a finite number"


@pytest.mark.parametrize("value", ["9" * 5000, "0x" + "f" * 5000, "1" + ":1" * 500_000, "0b" + "1" * 5000])
def test_a_number_may_not_be_endless(read, value: str) -> None:
    assert problem_of(read(f"a: {value}\n")) == "1:4: a: a number of more than 100 characters"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"a: 1\nb: \xff\n", "2:4"),
        (b"\xfe\xff\x00a", "1:1"),
        ("a: grün\nb: grün".encode("latin-1"), "1:6"),
        (b"a: \xed\xa0\x80", "1:4"),
    ],
)
def test_what_is_not_utf_8_is_a_problem_at_its_place(read, content: bytes, place: str) -> None:
    assert problem_of(read(content)) == f"{place}: cannot be read: this is not UTF-8 text"


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f", "\x9b", "\ufffe"])
def test_a_control_character_is_a_problem_at_its_place(read, character: str) -> None:
    problem = problem_of(read(f"a: ü1\nb: ü{character}\n"))
    assert problem == "2:5: not valid YAML: control characters are not allowed"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("a: 1\n---\nb: 2\n", "2:1"),
        ("a: [1\n", "2:1"),
        ("a: *nothing\n", "1:4"),
        ("a: &x 1\nb: &x 2\n", "2:4"),
        ("a:\n\t- 1\n", "2:1"),
        ("%YAML 3.0\n---\na: 1\n", "1:1"),
        ('a: "\\ud800"\n', "1:7"),
        ("a: 1\n b: 2\n", "2:3"),
        ("'unclosed\n", "2:1"),
    ],
)
def test_what_is_not_yaml_is_a_problem_at_its_place(read, content: str, place: str) -> None:
    assert problem_of(read(content)).startswith(f"{place}: not valid YAML: ")


@pytest.mark.parametrize(
    "content",
    ["[" * 1_000_000, "{a: " * 500_000, "- " * 1_000_000, "? " * 1_000_000, "[" * 65 + "]" * 65],
    ids=["lists", "mappings", "blocks", "keys", "one too deep"],
)
def test_nesting_is_bounded(read, content: str) -> None:
    assert "nested deeper than 64 levels" in problem_of(read(content))


def test_nesting_up_to_the_bound_is_read_and_aliases_do_not_get_around_it(read) -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).problems == []
    nested = "[" * 40 + "1" + "]" * 40
    assert "nested deeper than 64 levels" in problem_of(read(f"a: &a {nested}\nb: {nested.replace('1', '*a')}\n"))


@pytest.mark.parametrize(
    ("content", "path"),
    [("a: &a [1, *a]\n", "a[1]"), ("&a {b: {c: *a}}\n", "b.c"), ("a: &a {b: &b [*a, *b]}\n", "a.b[0]")],
)
def test_an_alias_inside_of_what_it_stands_for_is_a_problem(read, content: str, path: str) -> None:
    document = read(content)
    assert document.problems[0].path == path
    assert document.problems[0].message == "an alias inside of what it stands for"


def test_aliases_cannot_blow_a_file_up(read) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert f"more than {MAX_NODES} values" in problem_of(read("a0: &a0 [x]\n" + levels))


def test_merges_cannot_blow_a_file_up(read) -> None:
    keys = ", ".join(f"k{n}: 1" for n in range(100))
    levels = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30))
    assert len(data_of(read(f"a0: &a0 {{{keys}}}\n" + levels))["a29"]) == 100


def test_merging_many_large_mappings_is_bounded(read) -> None:
    keys = ", ".join(f"k{n}: 1" for n in range(20_000))
    document = read(f"a: &a {{{keys}}}\nb:\n  <<: [{', '.join(['*a'] * 20_000)}]\n")
    assert f"more than {MAX_NODES} values" in problem_of(document)


def test_a_file_is_bounded(read) -> None:
    assert problem_of(read(b"a" * (MAX_FILE_BYTES + 1))) == "1:1: cannot be read: the file is larger than 4 MiB"
    assert read(b"a" * MAX_FILE_BYTES).problems == []


def test_what_is_not_there_or_a_folder_is_a_problem(tmp_path: Path) -> None:
    document = read_document(tmp_path / "gone.yaml", "gone.yaml")
    assert "No such file" in str(document.problems[0])
    assert "cannot be read" in str(read_document(tmp_path, "folder").problems[0])


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")])
def test_what_never_ends_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file.yaml")
    (problem,) = read_document(tmp_path / "file.yaml", "file.yaml").problems
    assert problem.message == "cannot be read: it is no regular file"


@pytest.mark.parametrize(
    ("content", "place"), [(b"a: 1\n\tb: 2\n", "2:1"), (b"a:\n\t- 1\n", "2:1"), (b"\ta: 1\n", "1:1")]
)
def test_a_tab_is_called_a_tab(read, content: bytes, place: str) -> None:
    assert problem_of(read(content)) == f"{place}: not valid YAML: a tab; indent with spaces"
