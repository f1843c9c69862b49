"""The templates of the pages, with their style, their script and the policy that lets nothing else have any effect."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.page.texts import compared, diff_lines, line, shown
from passgate.tasks.reports.timeline import milliseconds

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates() -> "Environment":
    """Return the templates of the pages. Whatever they are given is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("passgate.tasks.reports.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (_source(name) for name in ("style.css", "script.js"))
    environment.globals |= {
        "style": style,
        "script": script,
        "policy": content_policy(style, script),
        "quantity": _quantity,
        "milliseconds": milliseconds,
        "compared": compared,
        "diff_lines": diff_lines,
        "figures": figures,
        "mean": _mean,
        "subject": findings.reason_subject,
        "weight": findings.weight,
    }
    environment.filters |= {"shown": shown, "line": line}
    return environment


def page_style() -> str:
    """Return the style of every page."""
    return _source("style.css")


def _quantity(number: float, unit: str) -> str:
    return figures.quantity(number * 1000, "ms") if unit == "s" and number < 1 else figures.quantity(number, unit)


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _source(name: str) -> str:
    return files("passgate.tasks.reports.page").joinpath("templates", name).read_text(encoding="utf-8")


def content_policy(style: str, script: str) -> str:
    """Return a Content-Security-Policy under which only this style and this script have any effect."""
    of_style, of_script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{of_style}'; script-src 'sha256-{of_script}'; "
        "base-uri 'none'; form-action 'none'"
    )
