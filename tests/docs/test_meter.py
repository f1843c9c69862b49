"""What docs/meter.md says, held against a meter that runs."""

import re

import httpx

from passgate.tasks.metering.cost_cap import CostCap
from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.task import Budgets
from passgate.tasks.providers import refusals, retries
from passgate.tasks.providers.endpoints import resolve_endpoint
from passgate.tasks.providers.registry import PROVIDERS
from tests.docs.pages import PAGES, code_in, rows, section, table
from tests.meters import open_served_meter
from tests.upstream import ScriptedUpstream

PAGE = "docs/meter.md"
SPEC = AgentSpec(kind=AgentKind.CLI, target="my-agent")


async def test_what_agents_get_and_what_the_meter_takes() -> None:
    variables = {row[0].strip("`"): row[1:] for row in rows(section(PAGE, "How agents find it"))[2:]}
    outside = {name: f"http://{name}" for name, (_, takes) in variables.items() if takes}
    async with open_served_meter(SPEC, PriceTable(), CostCap(), environment=outside) as meter:
        with meter.trial(Budgets(), lambda call: False) as trial:
            assert set(trial.variables) == set(variables)
            for name, (gets, _) in variables.items():
                assert name.endswith("_KEY") == (trial.variables[name] in code_in(gets))
    for provider in PROVIDERS.values():
        address, taken = provider.base_url_variables[0], resolve_endpoint(provider, Endpoint(), outside)
        assert (taken.base_url, taken.key) == (f"http://{address}", f"http://{provider.key_variable}")
        assert f"`{provider.url or 'https://NAME.openai.azure.com'}`" in variables[address][1]
    apis = {row[0].strip("`"): row[1] for row in rows(table(PAGES[PAGE], "provider"))[2:]}
    assert set(apis) == set(PROVIDERS)
    for provider in PROVIDERS.values():
        calls = code_in(apis[provider.name]) if provider.name != "azure" else ()
        assert all(provider.find_api(path.replace("models/NAME", "v1beta/models/NAME")) for path in calls)


async def test_a_call_that_is_not_sent_is_answered_as_it_says(upstream: ScriptedUpstream) -> None:
    environment = {"OPENAI_BASE_URL": upstream.openai_base_url}
    async with (
        open_served_meter(SPEC, PriceTable(), CostCap(), environment=environment) as meter,
        httpx.AsyncClient() as client,
    ):
        with meter.trial(Budgets(max_steps=8), lambda call: False) as trial:
            for _ in range(9):
                asked = {"model": "m", "messages": [{"role": "user", "content": "Go on."}]}
                answer = await client.post(f"{trial.base_urls['openai']}/chat/completions", json=asked)
    assert upstream.count == 8
    error = answer.json()["error"]
    assert f"\n{error['message']}\n" in PAGES[PAGE]
    said = " ".join(section(PAGE, "Budgets").split())
    assert f"status {answer.status_code} and code `{error['code']}`" in said


def test_the_statuses_of_providers_in_trouble() -> None:
    table = rows(section(PAGE, "Providers in trouble"))[2:]
    codes = {outcome: set(map(int, re.findall(r"\b[45]\d\d\b", happened))) for happened, outcome in table}
    again, fewer = (next(codes[key] for key in codes if key.startswith(begin)) for begin in ("tries", "fewer"))
    assert again == retries.TRY_AGAIN | retries._NEVER_BETTER
    assert fewer == retries.OVERLOADED
    (unauthorised,) = (happened for happened, _ in table if happened.startswith("401"))
    assert set(map(int, re.findall(r"\b4\d\d\b", unauthorised))) == refusals._UNAUTHORISED
