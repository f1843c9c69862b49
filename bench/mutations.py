"""Ways to break a file: bytes, lines, YAML structure, types, characters, sizes."""

import random
import re
from collections.abc import Callable
from typing import Any

import yaml

_LARGE = 256 * 1024
Mutation = Callable[[bytes, random.Random], bytes]

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, 10**30, -(10**30), 1e308, 0.1, "", " ", "x", "é", "\x00", "\ud83d", "yes"),
    *([], {}, [[]], {"": ""}, {"a": None}, [None], ["", 1, {}], {"type": "x"}, {"type": None}, "a" * 5000),
    *("file://x", "../../etc/passwd", "/dev/zero", "${{ X }}", "{{ x }}", "(", "(" * 200, "[a", "*", "~", "2026-01-01"),
)
_TEXTS: tuple[str, ...] = (
    *(
        "\t",
        "\u0000",
        "\ufeff",
        "\u2028",
        "\u202e",
        "\x85",
        "\x7f",
        "\\",
        '"',
        "'",
        ": ",
        "- ",
        "? ",
        "|",
        ">",
        "%",
        "@",
    ),
    *(
        "&a ",
        "*a",
        "<<: *a",
        "!!python/object:os.system ",
        "!!binary ",
        "!x ",
        "---\n",
        "...\n",
        "{",
        "}",
        "[",
        "]",
        "#",
    ),
    *("0x", "0o7", "1e400", "-.inf", ".nan", "190:20:30", "1_000", "=", "\r", "\r\n", "\n\n", "  ", "😀", "a: b: c"),
)


def flip_bytes(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if changed:
            changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def take_out(content: bytes, chance: random.Random) -> bytes:
    start = chance.randint(0, len(content))
    return content[:start] + content[start + chance.randint(1, 40) :]


def insert_text(content: bytes, chance: random.Random) -> bytes:
    place = chance.randint(0, len(content))
    return content[:place] + chance.choice(_TEXTS).encode() + content[place:]


def drop_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def double_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        index = chance.randrange(len(lines))
        lines.insert(chance.randint(0, len(lines)), lines[index])
    return b"".join(lines)


def swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.sample(range(len(lines)), 2)
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def indent(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        index = chance.randrange(len(lines))
        lines[index] = chance.choice((b" ", b"  ", b"\t", b"        ")) + lines[index]
    return b"".join(lines)


def other_encoding(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp1252")), "replace")


def replace_scalar(content: bytes, chance: random.Random) -> bytes:
    """Another text behind a colon."""
    places = list(re.finditer(rb":[ ]+([^\n]+)", content))
    if not places:
        return content
    place = chance.choice(places)
    return content[: place.start(1)] + chance.choice(_TEXTS).encode() + content[place.end(1) :]


def enlarge(content: bytes, chance: random.Random) -> bytes:
    """Longer than anybody writes: many lines, a deep list, aliases of aliases, a long text."""
    if len(content) > _LARGE:
        return content
    more = (
        b"\n" + b"- x\n" * 20_000,
        b"\nzz: " + b"[" * chance.choice((60, 70, 5_000)) + b"\n",
        b"\nzz: " + b"x" * 300_000 + b"\n",
        b"\na0: &a0 [x,x]\n" + b"".join(b"a%d: &a%d [*a%d,*a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
        b"".join(b"\nk%d: 1" % n for n in range(5_000)),
        content * 50,
    )
    return content + chance.choice(more)


def other_value(content: bytes, chance: random.Random) -> bytes:
    """Another value somewhere in the data."""
    return _with_data(content, chance, lambda container, key: container.__setitem__(key, chance.choice(_VALUES)))


def without_key(content: bytes, chance: random.Random) -> bytes:
    return _with_data(content, chance, lambda container, key: container.__delitem__(key))


def misspell_key(content: bytes, chance: random.Random) -> bytes:
    def rename(container: Any, key: Any) -> None:
        if isinstance(container, dict):
            text = str(key)
            place = chance.randint(0, len(text))
            container[text[:place] + chance.choice("aexs_-") + text[place + 1 :]] = container.pop(key)

    return _with_data(content, chance, rename)


def nest(content: bytes, chance: random.Random) -> bytes:
    """A value in a list or a mapping of its own, or a part of the file inside of another."""

    def wrap(container: Any, key: Any) -> None:
        value = container[key]
        container[key] = chance.choice(([value], {"value": value}, [value, value], {str(key): value}))

    return _with_data(content, chance, wrap)


def _with_data(content: bytes, chance: random.Random, change: Callable[[Any, Any], object]) -> bytes:
    try:
        data = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError):
        return flip_bytes(content, chance)
    places = list(_places(data))
    if not places:
        return flip_bytes(content, chance)
    change(*chance.choice(places))
    return yaml.safe_dump(data, allow_unicode=chance.random() < 0.5, sort_keys=False).encode("utf-8", "surrogatepass")


def _places(data: Any) -> list[tuple[Any, Any]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place for key, value in list(inner) for place in [(data, key), *_places(value)]]


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        *(flip_bytes, cut, take_out, insert_text, drop_line, double_line, swap_lines, indent, other_encoding),
        *(replace_scalar, enlarge, other_value, other_value, without_key, misspell_key, nest),
    )
}
"""By their names."""
