"""Tries: the job has a shallow clone, in which no merge base is known.

Must come: INCONCLUSIVE in CI before anything runs, with what to fetch.
"""

from tests.attacks.conftest import Attacked, Clone


def test_shallow_clone(attacked: Attacked) -> None:
    attacked.task("a", 'matches: "."')
    attacked.commit("Loosen")
    folder = attacked.path.parent / "clone"
    attacked.git(
        "clone",
        "--quiet",
        *["--depth", "1", "--no-single-branch"],
        "--branch",
        "change",
        attacked.path.as_uri(),
        str(folder),
    )
    clone = Clone(folder)
    outcome = clone.gate(CI="true")
    assert outcome.code == 3, outcome.printed
    assert outcome.verdict == {}, "nothing was run"
    assert "fetch-depth: 0" in outcome.printed
