"""Tests as files give them, put together but not yet read."""

from dataclasses import dataclass
from pathlib import Path

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.paths import Ground


@dataclass(frozen=True)
class SuiteContext:
    """An eval file: what it says of all its tests."""

    root: Node
    """The whole document, a mapping; for a file of raw cases an empty one."""
    file: Path
    """Absolute."""
    ground: Ground


@dataclass(frozen=True)
class RawTest:
    """One test with everything that has a say in it."""

    node: Node
    """A mapping; `${{ }}` are filled in, `{{ }}` are not."""
    context: SuiteContext
    """Whose input, graders and workspace apply: the imported suite's, or that of the file for raw cases."""
    runtime: SuiteContext
    """Whose runtime policy (`experiment`, `execution`) applies: that of the file that is run."""
    runs: tuple[Node, ...] = ()
    """The `run` mappings of the includes that brought it, innermost first."""
    default_id: str | None = None
    """The id where the test says none: the name of its folder."""
    workspace: Path | None = None
    """A folder beside the test that is its workspace template where it says none."""
    prompt: Node | None = None
    """A prompt template of the file (`prompts`), for the dialect in which tests are only variables."""
    prompt_label: str | None = None
    """Tells the tests of several prompts apart."""
