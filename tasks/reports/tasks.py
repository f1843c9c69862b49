"""Tasks as YAML for readers."""

from collections.abc import Sequence
from typing import Any

import yaml

from passgate.tasks.model.task import EvalTask
from passgate.tasks.reports.escape import visible


def tasks_as_yaml(tasks: Sequence[EvalTask]) -> str:
    """Tasks as YAML documents without defaults and digests. What a terminal would obey is escaped."""
    documents = []
    for task in tasks:
        fields = task.model_dump(mode="json", exclude_defaults=True, exclude={"task_digest", "grader_digest"})
        # As an author writes them: the model has `messages` outside of `inputs`, and always a description.
        if "messages" in fields:
            fields["inputs"]["messages"] = fields.pop("messages")
        if not task.description:
            del fields["description"]
        # A set has no order of its own.
        fields["gates"] = sorted(fields["gates"])
        text = yaml.dump(fields, Dumper=_TaskDumper, sort_keys=False, allow_unicode=True, width=110)
        documents.append(f"---\n{visible(text)}")
    return "".join(documents)


class _TaskDumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and every invisible character as its escape."""

    def ignore_aliases(self, data: Any) -> bool:
        # Equal values are written out twice: `*id001` says nothing to a reader.
        return True

    def represent_str(self, text: str) -> yaml.ScalarNode:
        # Between double quotes the escapes of `visible` are YAML's own.
        style = '"' if visible(text) != text else "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_TaskDumper.add_representer(str, _TaskDumper.represent_str)
