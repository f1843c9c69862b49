"""YAML from strangers: read safely, and every part of it with its place."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.document import (
    FETCH_LFS,
    LFS_POINTER,
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
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
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


@pytest.mark.parametrize(
    ("content", "data"),
    [
        ("a: plain\nb: 1\nc: 0.5\nd: 1.0e+3\n", {"a": "plain", "b": 1, "c": 0.5, "d": 1000.0}),
        ("a: null\nb:\n", {"a": None, "b": None}),
        ("list: [1, two, {three: 3}]\nblock: |\n  line\n", {"list": [1, "two", {"three": 3}], "block": "line\n"}),
        ("[2026-01-31, 2026-99-99, 1.2.3, =]", ["2026-01-31", "2026-99-99", "1.2.3", "="]),
        ("time: 2026-01-31T12:00:00Z", {"time": "2026-01-31T12:00:00Z"}),
        ("on: 1\n2: 2\n3.5: 3\nnull: 4\n? 2026-01-31\n: 5\n", {"on": 1, "2": 2, "3.5": 3, "null": 4, "2026-01-31": 5}),
        ('"<<": 1', {"<<": 1}),
        ("[yes, No, on, OFF, true, y, n, 'no']", [True, False, True, False, True, "y", "n", "no"]),
        ("a: 123456789012345678901234567890", {"a": 123456789012345678901234567890}),
        ('a: "\\x07\\0"', {"a": "\x07\x00"}),
        ("a: &a [1]\nb: *a\nc: {d: *a, e: *a}\n", {"a": [1], "b": [1], "c": {"d": [1], "e": [1]}}),
        ("a: &a {b: 1, <<: *a}\n", {"a": {"b": 1}}),
        ("[!!str 5, !!int '5', !!float 5, !!seq [1], !!map {a: 1}, ! 5]", ["5", 5, 5.0, [1], {"a": 1}, 5]),
        ("", None),
        ("\n\n", None),
        ("# only a comment\n", None),
        ("---\n", None),
        ("null\n", None),
    ],
)
def test_data_is_what_yaml_says(read, content: str, data: Any) -> None:
    assert data_of(read(content)) == data


def test_every_key_and_value_has_its_place(read) -> None:
    document = read("a: 1\nbeta:\n  - x\n  - {c: 2}\n")
    assert document.keys == {("a",): Place(1, 1), ("beta",): Place(2, 1), ("beta", 1, "c"): Place(4, 6)}
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


def test_a_byte_order_mark_and_windows_lines_are_read_over(read) -> None:
    document = read(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert data_of(document) == {"a": 1, "b": 2}
    assert document.keys[("b",)] == Place(2, 1)


def test_merges_give_a_mapping_what_it_does_not_say_itself(read) -> None:
    anchors = "base: &base {a: 1, b: 2}\nmore: &more {b: 3, c: 4}\n"
    *_, one, first_wins, chained, behind = data_of(
        read(
            f"{anchors}one: {{<<: *base, a: own}}\nfirst_wins: {{<<: [*base, *more]}}\n"
            "chained: {<<: {<<: *more, d: 5}, e: 6}\nbehind: {a: own, <<: *base}\n"
        )
    ).values()
    assert (one, behind) == ({"a": "own", "b": 2}, {"a": "own", "b": 2})
    assert first_wins == {"a": 1, "b": 2, "c": 4}
    assert chained == {"b": 3, "c": 4, "d": 5, "e": 6}


POINTER = LFS_POINTER.decode()
NO_YAML, NO_UTF_8 = "not valid YAML: ", "cannot be read: this is not UTF-8 text"
CONTROL, TAB = f"{NO_YAML}control characters are not allowed", f"{NO_YAML}a tab; indent with spaces"
NO_MERGE, ENDLESS = "`<<` takes a mapping or a list of mappings", "a: a number of more than 100 characters"
NO_NUMBER, NOT_FINITE = "1:4: a: not a valid ", "1:4: a: not a finite number"
TWICE = "duplicate key (first defined in line"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"{POINTER}\noid sha256:4d7a\nsize 12345\n", f"1:1: is a pointer of git LFS: {FETCH_LFS}"),
        ("<<: 3", f"1:1: {NO_MERGE}"),
        ("<<: [{a: 1}, 3]", f"1:1: {NO_MERGE}"),
        ("a: &a [1]\n<<: *a", f"1:1: {NO_MERGE}"),
        ("a: 1\nb: 2\na: 3\n", f"3:1: a: {TWICE} 1)"),
        ("a:\n  b: 1\n  'b': 2\n", f"3:3: a.b: {TWICE} 2)"),
        ("- {a: 1, a: 1}\n", f"1:10: [0].a: {TWICE} 1)"),
        ("a: {<<: {b: 1}, <<: {c: 1}}", f"1:17: a.<<: {TWICE} 1)"),
        ("1: a\n'1': b\n", f"2:1: 1: {TWICE} 1)"),
        ("b: 1\n? [a]\n: 1\n", "2:3: a key must be a plain text"),
        ("b: 1\n? {a: 1}\n: 1\n", "2:3: a key must be a plain text"),
        ("b: 1\n? !!python/name:os.system ''\n: 1\n", "2:3: a key must be a plain text"),
        ("a: !!int ''", NO_NUMBER),
        ("a: !!int 0x", NO_NUMBER),
        ("a: !!float x", NO_NUMBER),
        ("a: !!bool maybe", NO_NUMBER),
        ("a: .NaN", NOT_FINITE),
        ("a: -.inf", NOT_FINITE),
        ("a: 1.0e+999", NOT_FINITE),
        (f"a: {'9' * 5000}", f"1:4: {ENDLESS}"),
        (f"a: 0x{'f' * 5000}", f"1:4: {ENDLESS}"),
        (f"a: 1{':1' * 500_000}", f"1:4: {ENDLESS}"),
        (f"a: 0b{'1' * 5000}", f"1:4: {ENDLESS}"),
        (b"a: 1\nb: \xff\n", f"2:4: {NO_UTF_8}"),
        (b"\xfe\xff\x00a", f"1:1: {NO_UTF_8}"),
        ("a: grün\nb: grün".encode("latin-1"), f"1:6: {NO_UTF_8}"),
        (b"a: \xed\xa0\x80", f"1:4: {NO_UTF_8}"),
        ("a: ü1\nb: ü\x00\n", f"2:5: {CONTROL}"),
        ("a: ü1\nb: ü\x1b\n", f"2:5: {CONTROL}"),
        ("a: ü1\nb: ü\x7f\n", f"2:5: {CONTROL}"),
        ("a: ü1\nb: ü\x9b\n", f"2:5: {CONTROL}"),
        ("a: ü1\nb: ü\ufffe\n", f"2:5: {CONTROL}"),
        ("a: 1\n---\nb: 2\n", f"2:1: {NO_YAML}"),
        ("a: [1\n", f"2:1: {NO_YAML}"),
        ("a: *nothing\n", f"1:4: {NO_YAML}"),
        ("a: &x 1\nb: &x 2\n", f"2:4: {NO_YAML}"),
        ("%YAML 3.0\n---\na: 1\n", f"1:1: {NO_YAML}"),
        ('a: "\\ud800"\n', f"1:7: {NO_YAML}"),
        ("a: 1\n b: 2\n", f"2:3: {NO_YAML}"),
        ("a: 1\n\tb: 2\n", f"2:1: {TAB}"),
        ("a:\n\t- 1\n", f"2:1: {TAB}"),
        ("\ta: 1\n", f"1:1: {TAB}"),
        (b"a" * (MAX_FILE_BYTES + 1), "1:1: cannot be read: the file is larger than 4 MiB"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_read_is_a_problem_at_its_place(read, content: str | bytes, problem: str) -> None:
    assert problem_of(read(content)).startswith(problem)


@pytest.mark.parametrize(
    "tag", ["!!python/object/apply:os.system [id]", "!mine 1", "!!omap [a: 1]", "!!map text", "!!str [1]"]
)
def test_tags_are_refused(read, tag: str) -> None:
    document = read(f"a: {tag}\n")
    assert document.data == {"a": None}
    assert problem_of(document).startswith("1:4: a: the tag ")


def test_every_problem_of_a_file_is_found(read) -> None:
    document = read("a: !mine 1\nb: .nan\nb: 2\nc: !!int x\n")
    found = sorted((problem.line, problem.path) for problem in document.problems)
    assert found == [(1, "a"), (2, "b"), (3, "b"), (4, "c")]


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


def test_aliases_cannot_blow_a_file_up_and_it_may_be_large(read) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert f"more than {MAX_NODES} values" in problem_of(read("a0: &a0 [x]\n" + levels))
    assert read(b"a" * MAX_FILE_BYTES).problems == []


def test_merges_cannot_blow_a_file_up(read) -> None:
    keys = ", ".join(f"k{n}: 1" for n in range(100))
    levels = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30))
    assert len(data_of(read(f"a0: &a0 {{{keys}}}\n" + levels))["a29"]) == 100


def test_merging_many_large_mappings_is_bounded(read) -> None:
    keys = ", ".join(f"k{n}: 1" for n in range(20_000))
    document = read(f"a: &a {{{keys}}}\nb:\n  <<: [{', '.join(['*a'] * 20_000)}]\n")
    assert f"more than {MAX_NODES} values" in problem_of(document)


def test_what_is_not_there_or_a_folder_is_a_problem(tmp_path: Path) -> None:
    document = read_document(tmp_path / "gone.yaml", "gone.yaml")
    assert "No such file" in str(document.problems[0])
    assert "cannot be read" in str(read_document(tmp_path, "folder").problems[0])


@pytest.mark.parametrize("make", [lambda path: os.mkfifo(path), lambda path: path.symlink_to("/dev/zero")])
def test_what_never_ends_is_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "file.yaml")
    (problem,) = read_document(tmp_path / "file.yaml", "file.yaml").problems
    assert problem.message == "cannot be read: it is not a regular file"
