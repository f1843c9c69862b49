"""The sizes and times in the text are those of the code."""

import pytest

from passgate.tasks.agents import transcripts
from passgate.tasks.agents.conversation import users
from passgate.tasks.agents.http import endpoint
from passgate.tasks.agents.scoped import PRINTED_BYTES
from passgate.tasks.agents.tools import sandbox_tools
from passgate.tasks.budgets import requests
from passgate.tasks.formats.agents_file import LONGEST_NAME
from passgate.tasks.graders.judges.conversation import LONGEST_CONVERSATION
from passgate.tasks.providers import wire
from passgate.tasks.run import DEFAULT_SECONDS
from passgate.tasks.sandboxes import workbench
from tests.docs.pages import section

KIB, MIB = 1024, 1024 * 1024


@pytest.mark.parametrize(
    ("page", "heading", "said"),
    [
        ("docs/agents.md", "agents.yaml", f"at most {LONGEST_NAME} characters"),
        ("docs/agents.md", "http", f"a reply of more than {endpoint.MAX_REPLY_BYTES // MIB} MiB"),
        ("docs/agents.md", "The transcript", f"JSON of at most {transcripts.MAX_TRANSCRIPT_BYTES // MIB} MiB"),
        ("docs/agents.md", "The transcript", f"the last {PRINTED_BYTES // KIB} KiB"),
        ("docs/graders.md", "llm_rubric", f"longer than {LONGEST_CONVERSATION:,} characters"),
        ("docs/meter.md", "Beside model calls", f"more than {requests.MAX_BODY_BYTES // MIB} MiB"),
        ("docs/security.md", "What is done about it", f"{wire.MOST_BYTES // MIB} MiB of a provider"),
        ("docs/security.md", "What is done about it", f"at most {endpoint.MAX_REPLY_BYTES // MIB} MiB of a service"),
        ("docs/tasks.md", "Budgets", f"it is {DEFAULT_SECONDS:g} seconds"),
        ("docs/tasks.md", "Conversations", f"more than {users.LONGEST_REPLY:,} characters"),
        ("docs/tasks.md", "Sandboxes", f"at most {workbench.SETUP_SECONDS:g} seconds each"),
        ("docs/tasks.md", "Tools", f"up to {sandbox_tools.MAX_VARIABLE_BYTES // KIB} KiB of them"),
        ("docs/tasks.md", "Tools", f"more than {sandbox_tools.MAX_RESULT_CHARACTERS:,} characters"),
    ],
)
def test_the_number_is_that_of_the_code(page: str, heading: str, said: str) -> None:
    assert said in " ".join(section(page, heading).split())
