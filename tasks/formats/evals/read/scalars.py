"""The texts of a YAML file with the keys that lead to them, without building its values."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from passgate.tasks.formats.document import YAML_LOADER, UnreadableError, read_source

KEYS_KEPT = 3
KeyPath = tuple[str | None, ...]
"""The first keys on the way to a text; `None` stands for any place in a list."""


@dataclass
class _Open:
    """A list or mapping that is being read."""

    path: KeyPath
    is_mapping: bool
    key: str | None = None
    awaits_key: bool = True

    def inner(self) -> KeyPath:
        """The path of the value that comes next."""
        return (*self.path, self.key if self.is_mapping else None)[:KEYS_KEPT]

    def done(self) -> None:
        """A key or a value is over."""
        self.awaits_key = not self.awaits_key


def scalars_of(file: Path) -> Iterator[tuple[KeyPath, str]]:
    """Every text that is a value, in order, up to where the file stops being YAML."""
    try:
        yield from _scalars(yaml.parse(read_source(file), Loader=YAML_LOADER))
    except (UnreadableError, yaml.YAMLError):
        return


def _scalars(events: Iterator[yaml.Event]) -> Iterator[tuple[KeyPath, str]]:
    opened: list[_Open] = []
    for event in events:
        around = opened[-1] if opened else None
        if isinstance(event, yaml.CollectionStartEvent):
            if around and around.is_mapping and around.awaits_key:
                around.key = ""
            path = around.inner() if around else ()
            opened.append(_Open(path, isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
            if opened:
                opened[-1].done()
        elif isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) and around is not None:
            text = str(event.value) if isinstance(event, yaml.ScalarEvent) else ""
            if around.is_mapping and around.awaits_key:
                around.key = text
            else:
                yield around.inner(), text
            around.done()
