from typing import Any

import pytest

from passgate.tasks.formats.evals.variables import MAX_LOOPS, MAX_RENDERED, fill_variables, render_template

LONG = 10**9
VARIABLES = {
    "name": "Ada",
    "n": 3,
    "yes": True,
    "deep": {"a": {"b": "c"}, "list": ["x", "y"]},
    "a.b": "dots",
    "no": None,
}


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
        ("{% if %}", "template|longer"),
        ("{{ name | nothing }}", "template|longer"),
        ("{{ 1 / 0 }}", "template|longer"),
        ("{{ ''.__class__.__mro__ }}{{ name.__class__.mro() }}", "template|longer"),
        ("{{ 'x' * 1000000000 }}", "template|longer"),
        ("{{ 9 ** 99 }}", "template|longer"),
        ("{% for x in range(99999999) %}{% endfor %}", "template|longer"),
        (f"{{% for x in range({MAX_RENDERED // 50}) %}}{'y' * 60}{{% endfor %}}", "template|longer"),
    ],
    ids=lambda value: value[:40],
)
def test_what_has_no_bound_or_cannot_be_rendered_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        render_template(text, VARIABLES | {"x": ["a"]})


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("hi {{name}}, {{ name }}!", "hi Ada, Ada!"),
        ("{{ n }}", 3),
        (" {{ yes }} ", True),
        ("{{ no }}", None),
        ("n={{ n }} {{ yes }}", "n=3 true"),
        ("{{ deep.a.b }}", "c"),
        ("{{ deep.list.1 }}", "y"),
        ("{{ deep.list }}", ["x", "y"]),
        ("is {{ deep.list }}", 'is ["x", "y"]'),
        ("{{ a.b }}", "dots"),
        ("{{ gone }} {{ deep.gone }} {{ deep.list.9 }}", "{{ gone }} {{ deep.gone }} {{ deep.list.9 }}"),
        ("{{ gone }}", "{{ gone }}"),
        ("${{ name }}", "${{ name }}"),
        ("{{ name | upper }}", "{{ name | upper }}"),
        ([{"k": "{{ n }}"}, 1], [{"k": 3}, 1]),
    ],
)
def test_placeholders_are_filled(text: Any, filled: Any) -> None:
    answer = fill_variables(text, VARIABLES)
    assert answer == filled
    assert type(answer) is type(filled)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("hi {{ name }}", "hi Ada"),
        ("{{ gone }}{{ gone.deeper }}.", "."),
        ("{{ deep.a }} {{ yes }} {{ no }}", '{"b": "c"} true '),
        ("{% if yes %}on{% endif %}\n", "on\n"),
        ("{% for x in deep.list %}{{ x }},{% endfor %}{% for x in range(2) %}{{ x }}{% endfor %}", "x,y,01"),
        ("{{ name | upper }} {{ deep.list | dump }}", 'ADA ["x", "y"]'),
        ("{{ n * 2 }}", "6"),
        ("plain", "plain"),
    ],
)
def test_templates_are_rendered(text: str, rendered: str) -> None:
    assert render_template(text, VARIABLES) == rendered
