"""What an eval file says of the folder that the agent works in."""

from typing import Annotated

from pydantic import Field

from passgate.tasks.model.base import Frozen
from passgate.tasks.model.grader_options import Seconds, Text


class Repository(Frozen):
    """A git repository, checked out in the workspace."""

    path: Text = "."
    """Where in the workspace."""
    repo: Text
    """A URL, a path relative to the suites folder, or `owner/name` of GitHub."""
    commit: Text | None = None
    """A commit, tag or branch; the default branch when not given."""
    ancestor: Annotated[int, Field(ge=0)] = 0
    """How many first parents before `commit`."""
    sparse: tuple[Text, ...] = ()
    """Only these folders."""


class Hook(Frozen):
    """A command of the suites' authors; it sees the suites folder and has the network."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    """The program and its arguments."""
    cwd: Text = "."
    """Where it runs, relative to the suites folder."""
    timeout_seconds: Seconds = 60


class Workspace(Frozen):
    """How the workspace of a trial comes about: template, then repositories, then hooks."""

    template: Text | None = None
    """A folder that is copied, relative to the suites folder."""
    repos: tuple[Repository, ...] = ()
    before_all: Hook | None = None
    """Once per run, in the copy that the trials' workspaces are copied from."""
    before_each: Hook | None = None
    """In every trial's own workspace, before the agent."""
    after_each: Hook | None = None
    """In every trial's own workspace, after the graders."""
    after_all: Hook | None = None
    """Once at the end of the run."""
    environment: dict[str, str] = {}
    """Variables for the agent."""
    required_commands: tuple[Text, ...] = ()
    """Programs that the machine must have."""
    required_python_modules: tuple[Text, ...] = ()
