"""A judge without a model: it counts the words that a criterion and the answer share."""

import json
import re
from typing import Any, Final

from passgate.tasks.model.grade import JudgeReply, JudgeRequest
from passgate.tasks.model.transcript import Usage

_SECTION: Final = r"\[\[ ## {title} ## \]\]\n(.*?)(?=\n\[\[ ## |\Z)"
_MARKER: Final = re.compile(r"^=== [0-9a-f]{16} ===$", re.MULTILINE)
_ITEM: Final = re.compile(r"^- \[([^\]]+)\](?: \([^)]*\))*: (.*)$", re.MULTILINE)
_SCORING_ITEM: Final = re.compile(r"^### Criterion: (\S+).*\n((?:(?!### Criterion: ).*\n?)*)", re.MULTILINE)
_DESCRIPTION: Final = re.compile(r"^Description: (.*)$", re.MULTILINE)


class WordOverlapJudge:
    """Satisfied is an item when a word of at least 5 letters of it stands in the answer. With score ranges it has as
    many of 10 points as the share of its words that stand there. Without items the score is 0.9 for any answer, 0 for
    none.
    """

    name = "shared words"
    votes = 1

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        asked = "\n\n".join(message.content for message in request.messages)
        answer = _section(asked, "answer")
        low = (asked if answer is None else answer).lower()
        score = 0.9 if answer is None or answer else 0.0
        reply = {
            "score": score,
            "assertions": [{"text": "shared words", "passed": score > 0, "evidence": ""}],
            "checks": [*_marks(asked, low), *_points(asked, low)],
            "reasoning": "shared words",
        }
        return JudgeReply(text=json.dumps(reply), usage=Usage(tokens_in=10, tokens_out=5))

    async def close(self) -> None:
        """Nothing is held."""


def _section(asked: str, title: str) -> str | None:
    found = re.search(_SECTION.format(title=title), asked, re.DOTALL)
    return None if found is None else _MARKER.sub("", found[1]).strip()


def _marks(asked: str, answer: str) -> list[dict[str, Any]]:
    items = _ITEM.findall(_section(asked, "rubrics") or "")
    return [
        {"id": name, "satisfied": any(word in answer for word in _words(text)), "reasoning": "shared words"}
        for name, text in items
    ]


def _points(asked: str, answer: str) -> list[dict[str, Any]]:
    items = _SCORING_ITEM.findall(_section(asked, "scoring_criteria") or "")
    return [{"id": name, "score": _share(text, answer), "reasoning": "shared words"} for name, text in items]


def _share(item: str, answer: str) -> int:
    described = _DESCRIPTION.search(item)
    words = _words(described[1] if described else item)
    return int(10 * sum(word in answer for word in words) / len(words) + 0.5) if words else 0


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{5,}", text.lower()))
