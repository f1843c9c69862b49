"""Eval files whose tests are variables for prompts: defaults, scenarios, and every prompt with every test."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.raw import RawTest, SuiteContext
from passgate.tasks.formats.evals.read.documents import Documents, has_templates
from passgate.tasks.formats.evals.read.merging import merged
from passgate.tasks.formats.evals.read.prompt_templates import PromptTemplate, read_prompts
from passgate.tasks.formats.evals.read.references import FILE_SCHEME, files_of
from passgate.tasks.formats.schema_check import nearest

_SLUG = re.compile(r"[^a-z0-9]+")
_MAX_SLUG = 60


def with_templates(tests: Sequence[RawTest], context: SuiteContext, documents: Documents) -> list[RawTest]:
    """The tests of a suite with its `default_test`, once for every prompt; those of imported suites as they are."""
    if not has_templates(context.root):
        return list(tests)
    defaults = _default_test(context.root, documents)
    prompts = read_prompts(context.root, documents)
    finished: list[RawTest] = []
    for number, test in enumerate(tests, start=1):
        if test.context is context:
            whole = _with_defaults(_named(test, number), defaults)
            finished += _prompted(whole, prompts, documents)
        else:
            finished.append(test)
    return finished


def scenario_tests(context: SuiteContext, documents: Documents) -> list[RawTest]:
    """The tests of the `scenarios`: each test of a scenario with each of its configurations."""
    scenarios = context.root.get("scenarios")
    if scenarios is None:
        return []
    return [
        RawTest(node, context, context)
        for number, scenario in enumerate(_scenarios(scenarios, documents), start=1)
        for node in _scenario(scenario, number, documents)
    ]


def _named(test: RawTest, number: int) -> RawTest:
    """Tests that are only variables need no id: their description names them, else their number."""
    if test.default_id is not None:
        return test
    said = test.node.value.get("description")
    slug = _SLUG.sub("-", said.lower()).strip("-")[:_MAX_SLUG] if isinstance(said, str) else ""
    return replace(test, default_id=slug or f"test-{number}")


def _with_defaults(test: RawTest, defaults: Node | None) -> RawTest:
    return test if defaults is None else replace(test, node=merged(defaults, test.node))


def _default_test(root: Node, documents: Documents) -> Node | None:
    said = root.get("default_test")
    if said is not None and isinstance(said.value, str):
        found = files_of(said, documents)
        said = documents.read(found[0]) if found else None
    if said is not None and not isinstance(said.value, dict):
        documents.refuse(said.problem("expected a mapping with what every test has"))
        return None
    return said


def _prompted(test: RawTest, prompts: Sequence[PromptTemplate], documents: Documents) -> list[RawTest]:
    """The test once for each of the prompts, or for those that its own `prompts` names."""
    if not prompts:
        return [test]
    chosen = _chosen(test.node, prompts, documents)
    several = len(prompts) > 1
    return [replace(test, prompt=prompt.node, prompt_label=prompt.label if several else None) for prompt in chosen]


def _chosen(test: Node, prompts: Sequence[PromptTemplate], documents: Documents) -> Sequence[PromptTemplate]:
    names = test.get("prompts")
    if names is None:
        return prompts
    if not isinstance(names.value, list) or not all(isinstance(name, str) for name in names.value):
        documents.refuse(names.problem("expected a list with labels of prompts"))
        return prompts
    known = {name: prompt for prompt in prompts for name in prompt.names}
    for name in names.items():
        if name.value not in known:
            documents.refuse(name.problem(f"no prompt of this name{nearest(name.value, list(known))}"))
    return [prompt for prompt in prompts if any(name in names.value for name in prompt.names)] or prompts


def _scenarios(scenarios: Node, documents: Documents) -> Iterator[Node]:
    """The scenarios of a list, those of the files that it names included."""
    if isinstance(scenarios.value, str):
        yield from _scenarios_of_files(scenarios, documents)
        return
    if not isinstance(scenarios.value, list) or not scenarios.value:
        documents.refuse(scenarios.problem("expected a list of scenarios"))
        return
    for item in scenarios.items():
        if isinstance(item.value, str):
            yield from _scenarios_of_files(item, documents)
        elif isinstance(item.value, dict):
            yield item
        else:
            documents.refuse(item.problem(f"expected a scenario or `{FILE_SCHEME}` with one"))


def _scenarios_of_files(reference: Node, documents: Documents) -> Iterator[Node]:
    for file in files_of(reference, documents):
        content = documents.read(file)
        listed = content.get("scenarios") or content if content is not None else None
        yield from _mappings(listed, "a list of scenarios", documents)


def _scenario(scenario: Node, number: int, documents: Documents) -> Iterator[Node]:
    for key in scenario.value:
        if key not in {"config", "tests", "description"}:
            documents.refuse(scenario.child(key).problem("unknown key; known: config, description, tests", at_key=True))
    configurations = _mappings(scenario.get("config") or scenario, "a list of mappings with `vars`", documents)
    tests = _mappings(scenario.get("tests") or scenario, "a list of tests", documents)
    for index, configuration in enumerate(configurations, start=1):
        name = configuration.value.get("id") or f"scenario_{number}_{index}"
        for position, test in enumerate(tests, start=1):
            own = test.value.get("id") or f"scenario_test_{position}"
            whole = merged(configuration, test)
            yield whole.with_value({**whole.value, "id": f"{name}__{own}"})


def _mappings(node: Node | None, what: str, documents: Documents) -> list[Node]:
    """The items of a list of mappings, which must not be empty."""
    if node is None:
        return []
    if not isinstance(node.value, list) or not node.value:
        documents.refuse(node.problem(f"expected {what}"))
        return []
    wrong = [item for item in node.items() if not isinstance(item.value, dict)]
    for item in wrong:
        documents.refuse(item.problem("expected a mapping"))
    return [item for item in node.items() if isinstance(item.value, dict)]
