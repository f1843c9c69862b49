"""Commands for `sh -c` that succeed whatever they find."""

import shlex
from collections.abc import Sequence
from typing import Final

_OPERATORS: Final = frozenset({"&&", "||", "|", ";", "&"})
_SUCCEED: Final = frozenset({"true", ":", "echo", "printf"})
_SUCCEED_ON_A_PIPE: Final = _SUCCEED | {"tee", "cat", "head", "tail", "wc", "sort", "uniq", "tr", "cut", "nl"}
_END_THE_SHELL: Final = frozenset({"exit", "exec", "return", "set", "kill", "trap"})
_CALLS_A_SHELL: Final = frozenset({"sh", "bash", "dash", "/bin/sh", "/bin/bash"})


def always_succeeds(command: str) -> bool:
    """Whether a shell ends with 0 after this command for certain: `true`, `pytest || true`, `pytest | tee log`.

    Whatever is more than a list of plain commands is taken to be able to fail.
    """
    words = _words(command)
    if not words or any(word in {"{", "}"} or word.startswith(("<<", "#")) for word in words):
        return False
    last = max((place for place, word in enumerate(words) if word in _OPERATORS), default=-1)
    before, operator, final = words[: max(last, 0)], words[last] if last >= 0 else "", words[last + 1 :]
    if _END_THE_SHELL.intersection(before):
        return False
    if operator == "&" and not final:
        return True
    if operator == "&&" or any(set(word) <= set("()<>") for word in final):
        return False
    return _succeeds(final, on_a_pipe=operator == "|")


def same_for_all(command: Sequence[str]) -> bool:
    """Whether a program, given with its arguments, says and does the same whatever it is given."""
    if len(command) == 3 and command[0] in _CALLS_A_SHELL and command[1] == "-c":
        words = _words(command[2])
        return bool(words) and words[0] in _SUCCEED and not _OPERATORS.intersection(words) and "$" not in command[2]
    return bool(command) and command[0] in _SUCCEED


def _succeeds(words: Sequence[str], *, on_a_pipe: bool) -> bool:
    if not words:
        return False
    if words[0] == "exit":
        return list(words[1:]) == ["0"]
    return words[0] in (_SUCCEED_ON_A_PIPE if on_a_pipe else _SUCCEED)


def _words(command: str) -> list[str]:
    """The words and operators of a command; none when it cannot be read."""
    lines = command.strip().replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return []
    return words[:-1] if words and words[-1] == ";" else words
