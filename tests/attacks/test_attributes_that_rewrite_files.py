"""Tries: the change has git rewrite the files that judge, by `.gitattributes`.

Must come: FAIL by the bytes of the target branch; the attributes are an edit.
"""

from tests.attacks.conftest import Attacked


def test_attributes_that_rewrite_files(attacked: Attacked) -> None:
    attacked.write(".gitattributes", "suites/** text eol=crlf ident\n")
    attacked.commit("Rewrite")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert ".gitattributes" in outcome.edits
