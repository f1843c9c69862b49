"""`{{ name }}` in the texts of a test, filled from its variables, and templates in the limits that rendering needs."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jinja2 import ChainableUndefined, TemplateError, nodes
from jinja2.sandbox import SandboxedEnvironment

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.node import fill_placeholders
from passgate.tasks.model.json_values import MISSING

MAX_LOOPS: Final = 20
MAX_RENDERED = 1024 * 1024  # characters of one rendered text
# None of them makes a long text out of a short one.
FILTERS: Final = frozenset({
    "abs", "capitalize", "count", "d", "default", "dump", "first", "float", "int", "join", "last", "length", "list",
    "lower", "reverse", "round", "safe", "sort", "string", "title", "trim", "unique", "upper",
})  # fmt: skip
_REFUSED: Final[dict[type[nodes.Node], str]] = {
    nodes.Macro: "macro", nodes.CallBlock: "call", nodes.FilterBlock: "filter", nodes.Assign: "set",
    nodes.AssignBlock: "set", nodes.Include: "include", nodes.Import: "import", nodes.FromImport: "from",
    nodes.Extends: "extends", nodes.Block: "block",
}  # fmt: skip
_PLACEHOLDER = re.compile(r"(?<!\$)\{\{\s*([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*\}\}")


def _refusals(template: nodes.Template) -> Iterator[str]:
    """Yield what a template has beside variables, operators, `if`, plain filters and loops that are not nested."""
    for node in template.find_all(tuple(_REFUSED)):
        yield f"`{{% {_REFUSED[type(node)]} %}}` is not allowed"
    for name in (node.name for node in template.find_all(nodes.Filter) if node.name not in FILTERS):
        yield f"the filter {name!r} is not allowed; these are: {', '.join(sorted(FILTERS))}"
    for call in template.find_all(nodes.Call):
        if not (isinstance(call.node, nodes.Name) and call.node.name == "range"):
            yield "calls are not allowed but for `range`"
    loops = list(template.find_all(nodes.For))
    if len(loops) > MAX_LOOPS:
        yield f"more than {MAX_LOOPS} loops"
    # jinja bounds each `range`, but loops in one another multiply, and may print nothing that could be counted.
    inner = (part for loop in loops for part in (*loop.body, *loop.else_))
    is_nested = any(isinstance(part, nodes.For) or part.find(nodes.For) for part in inner)
    if is_nested or any(loop.recursive for loop in loops):
        yield "loops must not stand in one another"


def fill_variables(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value with every `{{ name }}` and `{{ a.b }}` in its texts filled in. A text that is one placeholder
    becomes the variable's value with its type. A placeholder without a variable stays as it is.
    """

    def inserted(match: re.Match[str]) -> str:
        found = _lookup(variables, match[1])
        return match[0] if found is MISSING else _as_text(found)

    def filled(text: str, _: DocumentPath) -> Any:
        if whole := _PLACEHOLDER.fullmatch(text.strip()):
            found = _lookup(variables, whole[1])
            return text if found is MISSING else found
        return _PLACEHOLDER.sub(inserted, text)

    return fill_placeholders(value, filled)


def _lookup(variables: Mapping[str, Any], name: str) -> Any:
    """Return the value at a dotted path; a variable whose own name has the dots comes first."""
    if name in variables:
        return variables[name]
    value: Any = variables
    for part in name.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return MISSING
    return value


def _as_text(value: Any) -> Any:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def render_template(text: str, variables: Mapping[str, Any]) -> str:
    """Return a template rendered as Nunjucks does it: no variable gives no text, lists and mappings become JSON. Raises
    `ValueError` for a template that is wrong or that could become endless.
    """
    if "{{" not in text and "{%" not in text and "{#" not in text:
        return text
    rendered, length = [], 0
    environment = _Sandbox(
        undefined=ChainableUndefined, keep_trailing_newline=True, finalize=_nunjucks_text, autoescape=False
    )
    environment.filters["dump"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        template = environment.parse(text)
        if message := next(_refusals(template), None):
            raise ValueError(f"not a template that passgate renders: {message}")
        # Piece by piece, so that a text without end is given up at the limit.
        for piece in environment.from_string(template).generate(variables):
            length += len(piece)
            if length > MAX_RENDERED:
                raise ValueError(f"it becomes longer than {MAX_RENDERED} characters")
            rendered.append(piece)
    except (TemplateError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a template that can be rendered: {error}") from error
    return "".join(rendered)


def _nunjucks_text(value: Any) -> Any:
    """Return what Nunjucks prints for a value: nothing for null, `true` and `false` as JSON has them."""
    if value is None:
        return ""
    return _as_text(value) if isinstance(value, bool | list | dict) else value


class _Sandbox(SandboxedEnvironment):
    """Without the operators that make a long text out of a short template."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        # `*` repeats texts and lists, `%` pads them, and a power of large numbers takes all memory.
        if not all(isinstance(side, int | float) and abs(side) <= MAX_RENDERED for side in (left, right)):
            raise TypeError(f"`{operator}` is for numbers up to {MAX_RENDERED}")
        if operator == "**" and abs(right) > 64:
            raise TypeError("`**` is for exponents up to 64")
        return super().call_binop(context, operator, left, right)
