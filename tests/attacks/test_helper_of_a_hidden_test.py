"""Tries: the change adds a `conftest.py` beside the hidden tests, which makes them pass.

Must come: FAIL: a new file in the suites folder is an edit.
"""

from tests.attacks.conftest import Attacked


def test_helper_of_a_hidden_test(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.tested()
    attacked.land()
    attacked.git("rebase", "--quiet", "main", "change")
    attacked.write(
        "suites/_shared/tests/a/conftest.py",
        "from pathlib import Path\n\ndef pytest_configure():\n    Path('a.txt').write_text('ok')\n",
    )
    attacked.commit("Help")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert outcome.edits == ["suites/_shared/tests/a/conftest.py"]
