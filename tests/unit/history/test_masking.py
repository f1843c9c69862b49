"""Which environment variables hold secrets."""

import pytest

from passgate.tasks.history.masking import masker_for, run_masker, secret_variables
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.quotes import MASK
from passgate.tasks.model.task import McpServer
from tests.builders import SHIPPED, a_plan, a_task

VALUE = "abcdefghijk1"


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("SHOP_KEY", VALUE, True),
        ("CI_JOB_TOKEN", VALUE, True),
        ("npm_token", VALUE, True),
        ("AWS_SECRET_ACCESS_KEY", VALUE, True),
        ("MY_PASSWORDS", VALUE, True),
        ("GOOGLE_CREDENTIALS_JSON", VALUE, True),
        ("DECLARED", "short1", True),
        ("JUDGE", "a", True),
        ("MODELS_AUTH", "a", True),
        ("HEADER", "a", True),
        ("SEARCH", "a", True),
        ("SHOP_KEY", "abcdefghij1", False),
        ("SHOP_KEY", "abcdefghijklmnop", False),
        ("SHOP_KEY", "1234567890123", False),
        ("KEYBOARD", VALUE, False),
        ("MONKEY", VALUE, False),
        ("PATH", VALUE, False),
        *(("PUBLIC_KEY", VALUE, False), ("CRM", "abc", True)),
        ("DECLARED", "", False),
    ],
)
def test_a_variable_holds_a_secret_by_its_name_and_value_or_because_somebody_says_so(
    name: str, value: str, is_secret: bool
) -> None:
    policy = SHIPPED.model_copy(
        update={
            "secrets": ("DECLARED",),
            "not_secrets": ("PUBLIC_KEY", "DECLARED"),
            "judge": SHIPPED.judge.model_copy(update={"api_key_variable": "JUDGE"}),
        }
    )
    agent = AgentSpec.model_validate(
        {
            "kind": "http",
            "target": "https://agent.example",
            "http": {"headers": {"Authorization": "Bearer ${{ HEADER }}"}},
            "upstreams": {"anthropic": {"api_key_variable": "MODELS_AUTH"}},
        }
    )
    server = McpServer(url="https://search.example/mcp", headers={"Authorization": "Bearer ${{ SEARCH }}"})
    own = McpServer(command="crm", variables={"TOKEN_OF_CRM": "${{ CRM }}"})
    task = a_task(mcp_servers={"search": server, "crm": own})
    assert secret_variables({name: value}, policy, [agent], [task]) == ([name] if is_secret else [])


def test_what_the_environment_holds_is_masked_whatever_it_holds_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "swordfish-123")
    masker, of_run = masker_for(None), run_masker(a_plan())
    monkeypatch.setenv("A_KEY", "other-value-123")
    for one in (masker, of_run):
        assert one.text("swordfish-123 and fish, other-value-123") == f"{MASK} and fish, other-value-123"
