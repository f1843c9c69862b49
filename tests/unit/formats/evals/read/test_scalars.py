"""The texts of a file with their keys."""

from pathlib import Path

from passgate.tasks.formats.evals.read.folder import scalars_of


def test_every_text_that_is_a_value_comes_with_its_first_keys(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: one\nb: [two, {c: {d: three}}]\n? [x, y]\n: four\ne: &n five\nf: *n\ng: six\n")
    assert list(scalars_of(file)) == [
        (("a",), "one"),
        (("b", None), "two"),
        (("b", None, "c"), "three"),
        (("", None), "x"),
        (("", None), "y"),
        (("",), "four"),
        (("e",), "five"),
        (("f",), ""),
        (("g",), "six"),
    ]


def test_a_broken_file_gives_what_stands_before(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a: one\nb: [\n")
    assert list(scalars_of(file)) == [(("a",), "one")]
    assert list(scalars_of(tmp_path / "gone.yaml")) == []
