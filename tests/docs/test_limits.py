"""The sizes and times in the text are those of the code."""

import pytest

from passgate.tasks.agents import conversation, http, tools, transcripts
from passgate.tasks.agents.processes.trial import MAX_PRINTED_BYTES, PRINTED_BYTES
from passgate.tasks.execution.trial import DEFAULT_SECONDS
from passgate.tasks.files import bounded_search
from passgate.tasks.formats import findings
from passgate.tasks.formats.agents_file import LONGEST_NAME
from passgate.tasks.formats.evals import compose, documents, variables
from passgate.tasks.formats.evals.graders import MAX_TEMPLATE_DEPTH
from passgate.tasks.gates.evidence import MOST_ERRORS
from passgate.tasks.graders import code_grader
from passgate.tasks.graders.judge_prompt import LONGEST_CONVERSATION
from passgate.tasks.integrity import merge_base
from passgate.tasks.metering import estimates, relay
from passgate.tasks.metering.ledger import MOST_UNANSWERED
from passgate.tasks.model.forecast import TARGET
from passgate.tasks.model.task import GateName, Hook
from passgate.tasks.providers import wire
from passgate.tasks.providers.retries import RetryPolicy
from passgate.tasks.sandboxes import changed_files, workbench
from passgate.tasks.stats import ratios
from tests.builders import SHIPPED
from tests.docs.pages import section

KIB, MIB = 1024, 1024 * 1024
NUMBERS = {3: "three", 5: "five", 6: "six", 8: "eight", 20: "twenty"}
WAITING = RetryPolicy()
ADMISSION = SHIPPED.gates[GateName.CI_MERGE].admission or pytest.fail("the shipped gate admits no task")


@pytest.mark.parametrize(
    ("page", "heading", "said"),
    [
        ("docs/agents.md", "agents.yaml", f"at most {LONGEST_NAME} characters"),
        ("docs/agents.md", "http", f"a reply of more than {http.MAX_REPLY_BYTES // MIB} MiB"),
        ("docs/agents.md", "python", f"returns more than {transcripts.MAX_TRANSCRIPT_BYTES // MIB} MiB"),
        ("docs/agents.md", "python", f"prints more than {MAX_PRINTED_BYTES // MIB} MiB"),
        ("docs/agents.md", "The transcript", f"JSON of at most {transcripts.MAX_TRANSCRIPT_BYTES // MIB} MiB"),
        ("docs/agents.md", "The transcript", f"the last {PRINTED_BYTES // KIB} KiB"),
        ("docs/agents.md", "Changed files", f"by path: at most {changed_files.MOST_FILES}"),
        ("docs/agents.md", "Changed files", f"more than {changed_files.MOST_ENTRIES:,} files and folders"),
        ("docs/agents.md", "Changed files", f"text of at most {changed_files.MOST_COMPARED // KIB} KiB"),
        ("docs/agents.md", "Changed files", f"at most {changed_files.MOST_LINES} lines differ"),
        ("docs/agents.md", "Changed files", f"room for {changed_files.MOST_DIFF // KIB} KiB"),
        ("docs/graders.md", "llm_rubric", f"longer than {LONGEST_CONVERSATION:,} characters"),
        ("docs/eval-graders.md", "regex", f"more than {bounded_search.CPU_SECONDS} seconds of CPU time"),
        ("docs/eval-graders.md", "regex", f"more than {bounded_search.LONGEST_TEXT:,} characters"),
        ("docs/eval-graders.md", "javascript", f"at most {code_grader.SCRIPT_SECONDS} seconds"),
        ("docs/eval-graders.md", "code_grader", f"more than {code_grader.LONGEST_OUTPUT:,} bytes"),
        ("docs/evals.md", "Tests from elsewhere", f"include files {compose.MAX_DEPTH} deep"),
        ("docs/evals.md", "Tests from elsewhere", f"others, {MAX_TEMPLATE_DEPTH} deep"),
        ("docs/evals.md", "Workspaces", f"at most {Hook.model_fields['timeout_seconds'].default} seconds"),
        ("docs/security.md", "What is done about it", f"has at most {documents.MAX_LINES_BYTES // MIB} MiB"),
        ("docs/security.md", "What is done about it", f"{findings.MAX_TEXT_BYTES // MIB} MiB; includes"),
        ("docs/security.md", "What is done about it", f"{compose.MAX_OPENED:,} files"),
        ("docs/security.md", "What is done about it", f"at most {variables.MAX_RENDERED:,} characters"),
        ("docs/baseline.md", "What is pooled", f"the newest {merge_base.MOST_ANCESTORS} commits"),
        ("docs/forecast.md", "forecast", f"false-failure rate to {TARGET:.0%}".replace("%", " %")),
        ("docs/gates.md", "Limits", f"at least {NUMBERS[ratios.LEAST_PAIRS]} tasks"),
        ("docs/gates.md", "Limits", f"one-sided {ratios.CONFIDENCE * 100:g} % interval"),
        (
            "docs/meter.md",
            "Reservations",
            f"of the request by {NUMBERS[estimates.CHARACTERS_PER_TOKEN]}",
        ),
        ("docs/meter.md", "Reservations", f"its characters and {estimates.UNSEEN_TOKENS} "),
        ("docs/meter.md", "Reservations", f"without one {estimates.UNLIMITED_REPLY:,} tokens"),
        ("docs/meter.md", "Budgets", f"{NUMBERS[MOST_UNANSWERED]} of them in a row"),
        ("docs/meter.md", "Providers in trouble", f"{NUMBERS[WAITING.attempts]} times in all"),
        ("docs/meter.md", "Providers in trouble", f"heeded up to {WAITING.longest_retry_after:g} seconds"),
        (
            "docs/meter.md",
            "Providers in trouble",
            f"{NUMBERS[WAITING.failures_until_open]} failures in a row that",
        ),
        ("docs/meter.md", "Providers in trouble", f"last {NUMBERS[int(WAITING.failing_seconds)]} seconds"),
        ("docs/meter.md", "Providers in trouble", f"every {NUMBERS[int(WAITING.probe_every)]} seconds"),
        ("docs/baseline.md", "Evidence", f"When {NUMBERS[MOST_ERRORS]} of a task end in errors"),
        (
            "docs/baseline.md",
            "Admission",
            f"once {ADMISSION.passes} of its newest {ADMISSION.of} trials",
        ),
        ("docs/meter.md", "Beside model calls", f"more than {relay.MAX_BODY_BYTES // MIB} MiB"),
        ("docs/security.md", "What is done about it", f"{wire.MOST_BYTES // MIB} MiB of a provider"),
        ("docs/security.md", "What is done about it", f"at most {http.MAX_REPLY_BYTES // MIB} MiB of a service"),
        ("docs/tasks.md", "Budgets", f"it is {DEFAULT_SECONDS:g} seconds"),
        ("docs/tasks.md", "Conversations", f"more than {conversation.LONGEST_REPLY:,} characters"),
        ("docs/tasks.md", "Sandboxes", f"at most {workbench.SETUP_SECONDS:g} seconds each"),
        ("docs/tasks.md", "Tools", f"up to {tools.MAX_VARIABLE_BYTES // KIB} KiB of them"),
        ("docs/tasks.md", "Tools", f"more than {tools.MAX_RESULT_CHARACTERS:,} characters"),
    ],
)
def test_the_number_is_that_of_the_code(page: str, heading: str, said: str) -> None:
    assert said in " ".join(section(page, heading).split())
