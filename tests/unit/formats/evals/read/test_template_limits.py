"""Templates that would take for ever, or more memory than there is, are refused before they are rendered."""

import pytest

from passgate.tasks.formats.evals.read.variables import MAX_LOOPS, render_template

LONG = 10**9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "one another"),
        ("{% for a in x %}{% if a %}{% for b in x %}{% endfor %}{% endif %}{% endfor %}", "one another"),
        ("{% for a in x %}{% else %}{% for b in x %}{% endfor %}{% endfor %}", "one another"),
        ("{% for a in x recursive %}{% endfor %}", "one another"),
        ("{% for a in range(9) %}{% endfor %}" * (MAX_LOOPS + 1), f"more than {MAX_LOOPS} loops"),
        ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "macro"),
        ("{% set x = 'a' %}" + "{% set x = x ~ x %}" * 60, "set"),
        ("{% set x %}a{% endset %}", "set"),
        ("{% include '/etc/passwd' %}", "include"),
        ("{% filter upper %}a{% endfilter %}", "filter"),
        (f"{{{{ 'a'.ljust({LONG}) }}}}", "calls"),
        (f"{{{{ 'a' | center({LONG}) }}}}", "'center'"),
        (f"{{{{ '%{LONG}d' | format(1) }}}}", "'format'"),
        ("{{ 'a' | replace('a', x) }}", "'replace'"),
        ("{{ namespace(x=1) }}", "calls"),
    ],
)
def test_what_has_no_bound_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        render_template(text, {"x": ["a"]})


def test_loops_beside_one_another_are_fine() -> None:
    text = "{% for a in x %}{{ a }}{% endfor %}{% for a in range(2) %}{{ a }}{% endfor %}"
    assert render_template(text, {"x": ["a"]}) == "a01"
