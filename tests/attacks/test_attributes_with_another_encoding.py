"""Tries: the change has git leave out or re-encode the files that judge, by `.gitattributes`.

Must come: FAIL by the files of the target branch; the attributes are an edit.
"""

from tests.attacks.conftest import Attacked


def test_attributes_with_another_encoding(attacked: Attacked) -> None:
    attacked.write(
        ".gitattributes", "suites/** export-ignore export-subst working-tree-encoding=ISO-8859-1 -diff binary\n"
    )
    attacked.task("a", 'matches: "."')
    attacked.commit("Re-encode")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert {".gitattributes", "suites/golden/a.yaml"} <= {*outcome.edits}
