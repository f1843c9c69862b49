"""The dialect whose tests are variables for prompts: defaults, scenarios, and every prompt with every test."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.documents import FILE_SCHEME, PLAIN, Documents, find_files
from passgate.tasks.formats.evals.node import Node, TextPlaces, as_mapping
from passgate.tasks.formats.evals.raw import EvalDialect, GraftedPlaces, RawTest, SuiteContext
from passgate.tasks.formats.evals.words import present
from passgate.tasks.formats.schema_check import nearest

# `${{ NAME }}` and `{{ env.NAME }}`, for files whose texts are templates.
WITH_TEMPLATES = re.compile(PLAIN.pattern + r"|(?<!\$)\{\{-?\s*env\.([A-Za-z_][A-Za-z0-9_]*)\s*-?\}\}")
# With one of these keys the texts of a file are templates.
TEMPLATE_KEYS = frozenset({"prompts", "providers", "default_test", "scenarios", "evaluate_options", "env"})
# `prompts` alone may be any list of them: with one of these beside it the file is an eval file.
_BESIDE_PROMPTS = frozenset({"providers", "targets", "default_test", "evaluate_options", "scenarios"})
_GRADERS = ("assert", "assertions")
MAX_PROMPT_BYTES = 1024 * 1024
_PROMPT_CONTENTS = ("raw", "prompt", "file", "path")
_MADE = ("function", "function_file")  # of a prompt: what makes its text
_PROMPT_DOCUMENTS = frozenset({".json", ".yaml", ".yml"})
_PROMPT_PROGRAMS = frozenset({".py", ".js", ".mjs", ".cjs", ".ts"})
_PROMPT_FILES = _PROMPT_DOCUMENTS | _PROMPT_PROGRAMS | {".txt", ".md", ".j2"}
_BETWEEN = "\n---\n"  # what stands between several prompts of one text file


def _template_reader(documents: Documents, root: Node) -> Documents:
    """Return what fills in `{{ env.NAME }}` too, first of all from the file's own `env`."""
    said = as_mapping(root.get("env"))
    own = {name: value for name, value in said.value.items() if isinstance(value, str)} if said is not None else {}
    return replace(documents, placeholder=WITH_TEMPLATES, own=own, environments={})


def _merge_defaults(defaults: Node, test: Node) -> Node:
    """Return a test with its defaults: their graders first, their variables, options and metadata if the test has none
    of that name, and every other key that it does not have.
    """
    value = dict(test.value)
    grafts: dict[DocumentPath, Node] = {}
    for key, said in defaults.value.items():
        origin = defaults.child(key)
        if key in _GRADERS:
            _add_graders(value, grafts, origin, test)
        elif value.get(key) is None:
            value[key] = said
            grafts[(*test.path, key)] = origin
        elif key in {"vars", "options", "metadata"} and isinstance(said, dict) and isinstance(value[key], dict):
            grafts |= {(*test.path, key, name): origin.child(name) for name in said if name not in value[key]}
            value[key] = {**said, **value[key]}
    return Node(value, GraftedPlaces(test.places, grafts), test.folder, test.path)


def _add_graders(value: dict[str, Any], grafts: dict[DocumentPath, Node], defaults: Node, test: Node) -> None:
    # Under the name that the test has for them: under two names they would differ, which is a problem.
    key = next((name for name in _GRADERS if value.get(name) is not None), str(defaults.path[-1]))
    own = value.get(key)
    if own is None:
        value[key] = defaults.value
        grafts[(*test.path, key)] = defaults
    elif isinstance(own, list) and isinstance(defaults.value, list):
        value[key] = [*defaults.value, *own]
        # The test's own graders stand further back now than its file says.
        whole = (*defaults.items(), *test.child(key).items())
        grafts |= {(*test.path, key, index): grader for index, grader in enumerate(whole)}


@dataclass(frozen=True)
class PromptTemplate:
    """One of the prompts."""

    node: Node  # a text or a list of messages
    label: str
    names: tuple[str, ...]  # by which tests may ask for it


def read_prompts(said: Node | None, documents: Documents) -> list[PromptTemplate]:
    """Return the prompts of an eval file, in order, each with a label of its own; none where it has none."""
    if said is None:
        return []
    items = [said] if isinstance(said.value, str) else list(said.items()) if isinstance(said.value, list) else []
    if not items:
        documents.refuse(said, "expected a list of prompts")
    found: list[PromptTemplate] = []
    for item in items:
        if isinstance(item.value, dict):
            found += _described_prompts(item, documents)
        elif isinstance(item.value, str) and _is_path(item.value):
            for file in find_files(item, documents):
                nodes = _of_file(file, item, documents)
                found += (PromptTemplate(node, file.stem, (item.value,)) for node in nodes)
        elif isinstance(item.value, str | list):
            found.append(PromptTemplate(item, "", ()))
        else:
            documents.refuse(item, "expected a prompt: a text, a list of messages, or a mapping with `prompt`")
    labels = Counter(prompt.label for prompt in found)
    for number, prompt in enumerate(found, start=1):
        # Labels become part of the tests' ids, which must differ.
        is_shared = labels[prompt.label] > 1 or not prompt.label
        label = f"{prompt.label or 'prompt'}-{number}" if is_shared else prompt.label
        found[number - 1] = PromptTemplate(prompt.node, label, (*prompt.names, label))
    return found


def _described_prompts(item: Node, documents: Documents) -> Iterator[PromptTemplate]:
    known = (*_PROMPT_CONTENTS, *_MADE, "id", "label", "prefix", "suffix", "config")
    for key in (key for key in item.value if key not in known):
        documents.refuse(item.child(key), f"unknown key{nearest(key, known)}", at_key=True)
    names = tuple(str(item.value[key]) for key in ("label", "id") if item.value.get(key) is not None)
    given, identity, made = present(map(item.get, _PROMPT_CONTENTS)), item.get("id"), present(map(item.get, _MADE))
    if not given and identity is not None and _is_path(str(identity.value)):
        given = (identity,)
    for part in made:
        message = "no function makes a prompt here; write its text, with {{ }} for what changes"
        documents.cannot_run(part, message, at_key=True)
    if len((*given, *made)) != 1:
        documents.refuse(item, f"expected one of: {', '.join(_PROMPT_CONTENTS)}")
        return
    part = (*given, *made)[0]
    nodes = [part] if isinstance(part.value, str | list) else []
    if not nodes:
        documents.refuse(part, "expected a text or a list of messages")
    elif isinstance(part.value, str) and not made and (part.path[-1] in {"file", "path"} or _is_path(part.value)):
        nodes = [node for file in find_files(part, documents) for node in _of_file(file, part, documents)]
    before, after = (str(item.value.get(key) or "") for key in ("prefix", "suffix"))
    for node in nodes:
        whole = node.with_value(f"{before}{node.value}{after}") if isinstance(node.value, str) else node
        if whole is node and (before or after):
            documents.refuse(item, "`prefix` and `suffix` are for a text; write them into the messages")
        yield PromptTemplate(whole, names[0] if names else "", names)


def _is_path(text: str) -> bool:
    """Return whether a prompt is a file's name: marked as one, or one word that ends as one."""
    return text.startswith(FILE_SCHEME) or (not set(text) & set(" \n{") and Path(text).suffix in _PROMPT_FILES)


def _of_file(file: Path, at: Node, documents: Documents) -> Iterator[Node]:
    """Yield the prompts in a file. One that is a program gives none that can be run."""
    if file.suffix in _PROMPT_PROGRAMS:
        documents.cannot_run(at, f"{at.value!r} is a program; passgate takes texts and messages")
        yield at  # its tests load all the same, like all that need what passgate does not support
    elif file.suffix in _PROMPT_DOCUMENTS:
        content = documents.read(file)
        if content is not None and not isinstance(content.value, str | list):
            documents.refuse(content, "expected a list of messages")
        elif content is not None:
            yield content
    elif file.is_file():
        text = documents.text(file, MAX_PROMPT_BYTES) or ""
        for part in text.split(_BETWEEN) if file.suffix == ".txt" else [text]:
            yield documents.interpolated(Node(part.strip(), TextPlaces(documents.shown(file)), file.parent))
    else:
        documents.refuse(at, "not a file")


def expand(tests: Sequence[RawTest], context: SuiteContext) -> list[RawTest]:
    """Return the tests of a file and of its scenarios with its `default_test`, once for every prompt."""
    documents = context.documents
    defaults = context.root.get("default_test")
    if defaults is not None and isinstance(defaults.value, str):
        files = find_files(defaults, documents)
        defaults = documents.read(files[0]) if files else None
    if defaults is not None and not isinstance(defaults.value, dict):
        documents.refuse(defaults, "expected a mapping with what every test has")
        defaults = None
    prompts = read_prompts(context.root.get("prompts"), documents)
    finished: list[RawTest] = []
    for number, test in enumerate([*tests, *_scenario_tests(context)], start=1):
        if test.context is not context:
            finished.append(test)
            continue
        whole = test
        if test.default_id is None:
            # Tests that are only variables need no id: their description names them, else their number.
            said = test.node.value.get("description")
            slug = re.sub(r"[^a-z0-9]+", "-", said.lower()).strip("-")[:60] if isinstance(said, str) else ""
            whole = replace(test, default_id=slug or f"test-{number}")
        if defaults is not None:
            whole = replace(whole, node=_merge_defaults(defaults, whole.node))
        finished += _prompt_tests(whole, prompts, documents)
    return finished


def _prompt_tests(test: RawTest, prompts: Sequence[PromptTemplate], documents: Documents) -> list[RawTest]:
    """Return the test once for each of the prompts, or for those that its own `prompts` names."""
    if not prompts:
        return [test]
    chosen, names = prompts, test.node.get("prompts")
    if names is not None and isinstance(names.value, list) and all(isinstance(name, str) for name in names.value):
        known = {name: prompt for prompt in prompts for name in prompt.names}
        for name in names.items():
            if name.value not in known:
                documents.refuse(name, f"no prompt of this name{nearest(name.value, list(known))}")
        chosen = [prompt for prompt in prompts if any(name in names.value for name in prompt.names)] or prompts
    elif names is not None:
        documents.refuse(names, "expected a list with labels of prompts")
    # With a single prompt ids stay without a label, as if there were no `prompts`.
    return [
        replace(test, prompt=prompt.node, prompt_label=prompt.label if len(prompts) > 1 else None) for prompt in chosen
    ]


def _scenario_tests(context: SuiteContext) -> list[RawTest]:
    """Return the tests of the `scenarios`: each test of a scenario with each of its configurations."""
    scenarios, documents = context.root.get("scenarios"), context.documents
    found: list[RawTest] = []
    for number, scenario in enumerate(_scenarios(scenarios, documents) if scenarios else (), start=1):
        for key in (key for key in scenario.value if key not in {"config", "tests", "description"}):
            documents.refuse(scenario.child(key), "unknown key; known: config, description, tests", at_key=True)
        configurations = _mappings(scenario.get("config") or scenario, "a list of mappings with `vars`", documents)
        tests = _mappings(scenario.get("tests") or scenario, "a list of tests", documents)
        for index, configuration in enumerate(configurations, start=1):
            name = configuration.value.get("id") or f"scenario_{number}_{index}"
            for position, test in enumerate(tests, start=1):
                own = test.value.get("id") or f"scenario_test_{position}"
                whole = _merge_defaults(configuration, test)
                node = whole.with_value({**whole.value, "id": f"{name}__{own}"})
                found.append(RawTest(node, context, context))
    return found


def _scenarios(scenarios: Node, documents: Documents) -> Iterator[Node]:
    """Yield the scenarios of a list, those of the files that it names included."""
    if isinstance(scenarios.value, str):
        for file in find_files(scenarios, documents):
            content = documents.read(file)
            listed = content.get("scenarios") or content if content is not None else None
            yield from _mappings(listed, "a list of scenarios", documents)
        return
    if not isinstance(scenarios.value, list) or not scenarios.value:
        documents.refuse(scenarios, "expected a list of scenarios")
        return
    for item in scenarios.items():
        if isinstance(item.value, str):
            yield from _scenarios(item, documents)
        elif isinstance(item.value, dict):
            yield item
        else:
            documents.refuse(item, f"expected a scenario or `{FILE_SCHEME}` with one")


def _mappings(node: Node | None, what: str, documents: Documents) -> list[Node]:
    """Return the items of a list of mappings, which must not be empty."""
    if node is None:
        return []
    if not isinstance(node.value, list) or not node.value:
        documents.refuse(node, f"expected {what}")
        return []
    for item in node.items():
        if not isinstance(item.value, dict):
            documents.refuse(item, "expected a mapping")
    return [item for item in node.items() if isinstance(item.value, dict)]


PROMPTS = EvalDialect(
    recognises=lambda keys: not TEMPLATE_KEYS.isdisjoint(keys),
    claims=lambda keys: "prompts" in keys and not _BESIDE_PROMPTS.isdisjoint(keys),
    reader=_template_reader,
    expand=expand,
)
