"""Tries: the change brings modules named as those that passgate imports.

Must come: FAIL: the command loads nothing from the working folder.
"""

from tests.attacks.conftest import INSTALLED, Attacked


def test_modules_beside_the_gate(attacked: Attacked) -> None:
    for name in ("yaml", "typer", "json", "pydantic", "httpx", "sitecustomize", "usercustomize", "passgate/__init__"):
        attacked.write(f"{name}.py", "open('loaded', 'w')\nraise SystemExit(0)\n")
    attacked.commit("Shadow")
    outcome = attacked.command("--agent", "desk", passgate=INSTALLED)
    assert outcome.code == 1, outcome.printed
    assert not (attacked.path / "loaded").exists()
