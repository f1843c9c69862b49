"""Documents as YAML that people read: blocks, literal texts, no aliases, no text that looks like something else."""

import re
from typing import Any

import yaml

_WIDTH = 2**31
"""No line is broken: a text of one line stays in one."""
_LOOKS_OTHERWISE = re.compile(
    r"[-+]?(0o?[0-7_]+|0x[0-9a-f_]+|0b[01_]+|(\.\d+|\d[\d_]*(\.\d*)?)(e[-+]?\d+)?|\.(inf|nan))|y|n|null|true|false",
    re.IGNORECASE,
)
"""What some version of YAML takes for a number or a truth value, of which PyYAML knows only its own."""
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")


def yaml_text(document: Any) -> str:
    """A document of JSON values as YAML, keys in their order. Reading it gives the same document."""
    text: str = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of lists are indented, as in the files that people write."""
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))


def _style(text: str) -> str | None:
    if _OTHER_BREAKS.search(text):
        return '"'
    if "\n" in text:
        return "|" if text.strip() else '"'
    return "'" if _LOOKS_OTHERWISE.fullmatch(text) else None


_Dumper.add_representer(str, _text)
