"""Variables of tests in texts."""

from typing import Any

import pytest

from passgate.tasks.formats.evals.read.variables import MAX_RENDERED, fill_variables, render_template

VARIABLES = {
    "name": "Ada",
    "n": 3,
    "yes": True,
    "deep": {"a": {"b": "c"}, "list": ["x", "y"]},
    "a.b": "dots",
    "no": None,
}


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
        ("{% for x in deep.list %}{{ x }},{% endfor %}", "x,y,"),
        ("{{ name | upper }} {{ deep.list | dump }}", 'ADA ["x", "y"]'),
        ("{{ n * 2 }}", "6"),
        ("plain", "plain"),
    ],
)
def test_templates_are_rendered(text: str, rendered: str) -> None:
    assert render_template(text, VARIABLES) == rendered


@pytest.mark.parametrize(
    "text",
    [
        "{% if %}",
        "{{ name | nothing }}",
        "{{ 1 / 0 }}",
        "{{ ''.__class__.__mro__ }}{{ name.__class__.mro() }}",
        "{{ 'x' * 1000000000 }}",
        "{{ 9 ** 99 }}",
        "{% for x in range(99999999) %}{% endfor %}",
        f"{{% for x in range({MAX_RENDERED // 50}) %}}{'y' * 60}{{% endfor %}}",
    ],
)
def test_a_template_that_cannot_be_rendered_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"template|longer"):
        render_template(text, VARIABLES)
