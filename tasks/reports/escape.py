"""Text from outside, made harmless for the place where it is shown.

Agents write task output, tool names and error texts. Each of these may try to control the terminal, the log parser of a
CI service, a Markdown renderer or an XML parser that reads the report.
"""

import re
import unicodedata

ELLIPSIS = "…"
NEWLINE = "⏎"

_STRING_END = "\x07\x1b\x90\x98\x9c-\x9f"
_ANSI_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^{_STRING_END}]*(?:\x07|\x1b\\|\x9c)"
)
_LINE_END = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Runners read their output: GitHub obeys a line that begins with `::command::` and `##[command]` anywhere in a
# line, Azure `##vso[command]`, TeamCity `##teamcity[command]`.
_RUNNER_COMMAND = re.compile(r"#(?=#[A-Za-z]*\[)|(?<!\S):(?=:)")
# Controls, invisible format characters (bidi overrides, zero-width, tags), halves of surrogate pairs, separators.
_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_NONCHARACTERS = {"\ufffe", "\uffff"}

_MARKDOWN_CHARACTERS = str.maketrans({character: f"&#{ord(character)};" for character in "&<>\"'|`*[]\\~$"})
_MARKDOWN_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# A zero-width space keeps GitHub from linking what follows; a backslash or an entity does not.
_MARKDOWN_LINK = re.compile(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
_ZERO_WIDTH_SPACE = "&#8203;"


def printable(text: str, limit: int) -> str:
    """Return the text in one line of at most `limit` characters that a terminal only shows.

    ANSI sequences are removed, line ends become `⏎`, every other invisible character becomes its escape, as in
    `\\x00`. A text that is cut ends with `…`.
    """
    # Cut before every character is looked at: what an agent wrote may be long.
    head = _ANSI_SEQUENCE.sub("", text).strip()[: limit + 1]
    return _harmless(_LINE_END.sub(f" {NEWLINE} ", head), limit)


def printable_lines(text: str, *, lines: int, limit: int) -> tuple[str, ...]:
    """Return the text's lines with their indent, as `printable` makes each, at most `limit` characters long.

    Of more than `lines` lines one line replaces the middle.
    """
    shown = _LINE_END.split(_ANSI_SEQUENCE.sub("", text).strip("\r\n").rstrip())
    if len(shown) > lines:
        tail = lines // 3
        head = lines - tail - 1
        gap = f"{ELLIPSIS} {len(shown) - head - tail} lines left out {ELLIPSIS}"
        shown[head : len(shown) - tail] = [gap]
    return tuple(_harmless(line.rstrip()[: limit + 1], limit) for line in shown)


def visible(text: str) -> str:
    """Return the text with every invisible character except its line ends as its escape."""
    # Nearly every line is printable, and asking for that is a hundred times faster than looking at each character.
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    return "".join(
        mark.encode("unicode_escape", "surrogatepass").decode("ascii")
        if unicodedata.category(mark) in _INVISIBLE or mark in _NONCHARACTERS
        else mark
        for mark in line
    )


def readable(text: str, limit: int) -> tuple[str, int]:
    """Return the text's lines with every invisible character as its escape, and how many characters were left out.

    Of a text longer than `limit` a part in the middle is left out, so that its beginning and its end remain.
    """
    text, left_out = shorten_middle(text, limit)
    return visible(_LINE_END.sub("\n", text).expandtabs(4)), left_out


def shorten_middle(text: str, limit: int) -> tuple[str, int]:
    """Return the text, or its beginning and end around a line that says how much is left out, and that number."""
    left_out = max(0, len(text) - limit)
    if not left_out:
        return text, 0
    tail = limit // 4
    gap = f"\n{ELLIPSIS} {left_out:,} characters left out {ELLIPSIS}\n"
    return f"{text[: limit - tail]}{gap}{text[len(text) - tail :]}", left_out


def markdown(text: str, limit: int = 300) -> str:
    """At most `limit` characters of text for a table cell or a line of Markdown, or for HTML within it.

    Only character references are used: they work in both, where a backslash works in Markdown alone.
    """
    escaped = printable(text, limit).translate(_MARKDOWN_CHARACTERS)
    # The character references above hold `#` themselves, so links are broken in the parts between them.
    parts = re.split(r"(&#\d+;)", escaped)
    parts[::2] = [_MARKDOWN_LINK.sub(_ZERO_WIDTH_SPACE, part) for part in parts[::2]]
    return _MARKDOWN_EDGE_UNDERSCORE.sub("&#95;", "".join(parts))


def markdown_fence(lines: tuple[str, ...]) -> str:
    """Printable lines as a fenced block that nothing in them can end."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((f"{fence}text", *lines, fence))


def xml_text(text: str, limit: int) -> str:
    """Text of at most `limit` characters, its lines kept, without what XML 1.0 cannot hold."""
    # One line end for all: XML 1.0 cannot hold some of them, and parsers change others.
    return _harmless(_LINE_END.sub("\n", _ANSI_SEQUENCE.sub("", text).strip()[: limit + 1]), limit)


def annotation(text: str) -> str:
    """Return the message of a workflow command of GitHub Actions."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def annotation_property(text: str) -> str:
    """Return the value of a property of a workflow command of GitHub Actions."""
    return annotation(text).replace(":", "%3A").replace(",", "%2C")


def _harmless(text: str, limit: int) -> str:
    """Return the text with invisible characters and commands to runners as their escapes, cut to the limit."""
    shown = _RUNNER_COMMAND.sub(lambda found: f"\\x{ord(found.group()):x}", visible(text.expandtabs(4)))
    return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS
