"""Who judges: what the corpus' own targets answer, else the judge of shared words."""

from pathlib import Path
from typing import Any

import yaml

from passgate.tasks.model.grade import JudgeReply, JudgeRequest, LlmJudge
from passgate.tasks.model.graders import Grader
from tests.word_overlap_judge import WordOverlapJudge

_FILES = (".agentv/targets.yaml", "providers.yaml")


class FixedJudge:
    """Always the same reply."""

    name = "fixed"
    votes = 1

    def __init__(self, reply: str) -> None:
        self._reply = reply

    async def reply(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(text=self._reply)

    async def close(self) -> None:
        """Nothing is held."""


def judge_for(grader: Grader, file: Path, corpus: Path) -> LlmJudge:
    """The judge of a grader: the fixed reply of its target, as the targets near the eval file have it."""
    replies = _replies(file, corpus)
    target = getattr(grader, "target", None) or ("judge_ok" if "judge_ok" in replies else None)
    return FixedJudge(replies[target]) if target in replies else WordOverlapJudge()


def _replies(file: Path, corpus: Path) -> dict[str, str]:
    for folder in file.parents:
        for name in _FILES:
            if (folder / name).is_file():
                return _fixed_replies(yaml.safe_load((folder / name).read_text(encoding="utf-8")))
        if folder == corpus:
            break
    return {}


def _fixed_replies(targets: Any) -> dict[str, str]:
    """The targets that answer without thinking: mocks, and commands that print one text."""
    entries = targets.get("targets", ()) if isinstance(targets, dict) else targets
    replies = {}
    for entry in entries:
        if isinstance(entry.get("response"), str):
            replies[str(entry["name"])] = entry["response"]
        command = (entry.get("config") or {}).get("command", "")
        if command.startswith("printf '%s' '"):
            replies[str(entry["label"])] = command.split("'")[3]
        elif command.startswith("echo "):
            replies[str(entry["label"])] = command.removeprefix("echo ").rpartition(" > ")[0]
    return replies
