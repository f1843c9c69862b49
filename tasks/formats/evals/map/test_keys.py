"""The keys of one test in eval files, in all dialects."""

from passgate.tasks.formats.evals.read.node import Key
from passgate.tasks.formats.schema_check import Kind

_TEXT, _LIST, _MAPPING = (Kind.TEXT,), (Kind.LIST,), (Kind.MAPPING,)
_NUMBER = (Kind.NUMBER,)

TEST_KEYS = {
    "id": Key((Kind.TEXT, Kind.WHOLE), says="Unique in its file."),
    "criteria": Key(_TEXT, spellings=("expected_outcome",), says="What a good answer is, in words."),
    "description": Key(_TEXT),
    "note": Key(_TEXT, says="Told to judges only."),
    "conversation_id": Key((Kind.TEXT, Kind.WHOLE), says="Tests of one conversation have the same."),
    "metadata": Key(_MAPPING),
    "governance": Key(_MAPPING, says="Goes into `metadata`."),
    "tags": Key((Kind.LIST, Kind.MAPPING, Kind.TEXT)),
    "suite": Key(_TEXT),
    "category": Key(_TEXT, says="Goes into `metadata`."),
    "input": Key(spellings=("input_messages",), says="A text, a message, messages, or a structured payload."),
    "input_files": Key((Kind.LIST, Kind.TEXT), items=_TEXT, says="Files that go before a text as input."),
    "expected_output": Key(says="A text, a JSON value, or messages."),
    "expected_messages": Key(),
    "rubrics": Key(_LIST, says="Items of a rubric that a judge marks."),
    "assert": Key(_LIST, says="Graders."),
    "assertions": Key(_LIST, says="Graders."),
    "evaluators": Key(_LIST, says="Graders."),
    "execution": Key(_MAPPING, says="target, timeout_seconds, threshold, repeats, skip_defaults."),
    "run": Key(_MAPPING, says="threshold, repeat, timeout_seconds, budget_usd."),
    "threshold": Key(_NUMBER, says="The least score that passes."),
    "timeout_seconds": Key(_NUMBER, says="Seconds for one trial."),
    "repeat": Key((Kind.WHOLE, Kind.MAPPING)),
    "target": Key(_TEXT),
    "targets": Key(_LIST),
    "provider": Key(),
    "providers": Key(),
    "prompts": Key(),
    "vars": Key(_MAPPING, says="Values for `{{ name }}`."),
    "options": Key(_MAPPING),
    "mode": Key(_TEXT, says="conversation"),
    "turns": Key(_LIST, items=_MAPPING, says="What the user says one after the other, with graders for each answer."),
    "aggregation": Key(_TEXT, says="mean, min or max of the turns."),
    "on_turn_failure": Key(_TEXT, says="continue or stop"),
    "window_size": Key((Kind.WHOLE,)),
    "depends_on": Key((Kind.LIST, Kind.TEXT), items=_TEXT),
    "on_dependency_failure": Key(_TEXT),
    "workspace": Key((Kind.MAPPING, Kind.TEXT), says="The folder that the agent works in."),
    "environment": Key((Kind.MAPPING, Kind.TEXT), says="The folder that the agent works in."),
    "preprocessors": Key(),
    "passgate": Key(_MAPPING, says="What only passgate knows of a test, as task files say it."),
}
OPTIONS_KEYS = {
    "provider": Key(says="The judge's name in the tool that the file was written for."),
    "transform": Key(),
    "transform_vars": Key(),
    "postprocess": Key(),
    "prefix": Key(_TEXT),
    "suffix": Key(_TEXT),
    "rubric_prompt": Key(),
    "disable_var_expansion": Key((Kind.TRUTH,)),
    "disable_conversation_memory": Key((Kind.TRUTH,)),
    "store_output_as": Key(_TEXT),
    "run_serially": Key((Kind.TRUTH,)),
    "repeat": Key((Kind.WHOLE,)),
}
TURN_KEYS = {
    "input": Key(needed=True, says="A text or messages."),
    "expected_output": Key(says="A text, a JSON value, or messages."),
    "assert": Key(_LIST, spellings=("assertions", "evaluators"), says="Graders of the answer."),
    "name": Key(_TEXT),
    "id": Key(_TEXT),
}
OPTIONS_NOT_HAD = {
    "transform": "passgate transforms no answers",
    "transform_vars": "passgate transforms no variables",
    "postprocess": "passgate transforms no answers",
    "prefix": "passgate has no prefix of prompts",
    "suffix": "passgate has no suffix of prompts",
    "rubric_prompt": "a judge's prompt stands with its grader",
    "store_output_as": "every trial stands alone: no test gets the answer of another",
}
