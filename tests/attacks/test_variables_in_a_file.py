"""Tries: the change brings a `.env` with variables of passgate, of CI systems and of the loader.

Must come: FAIL: passgate takes no such variable from it.
"""

from tests.attacks.conftest import Attacked


def test_variables_in_a_file(attacked: Attacked) -> None:
    attacked.write(
        ".env", "CI=\nPASSGATE_JUDGE_MODEL=x\nGITHUB_BASE_REF=change\nPYTHONPATH=.\nLD_PRELOAD=./x.so\nPATH=.\n"
    )
    attacked.task("a", 'matches: "."')
    attacked.commit("Set")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
