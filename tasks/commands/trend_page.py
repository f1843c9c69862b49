"""The trend of a gate as a page, by what the history says now."""

from pathlib import Path
from typing import Final

from passgate.tasks.commands.trend import TrendRequest, read_trend
from passgate.tasks.errors import UsageError
from passgate.tasks.formats.loading import policy_or_default
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.earlier_runs import open_history
from passgate.tasks.model.task import GateName
from passgate.tasks.reports.trend_files import trend_html

GATES: Final = "gates.yaml"


def trend_page(gate: GateName, agent: str, *, home: str, gates: Path | None = None) -> str:
    """The trend of a gate with an agent, as HTML. `home` is the link to all runs.

    Raises `PassgateError` where the history has no such run or cannot be read.
    """
    policy, checkout = policy_or_default(gates or Path(GATES)), Checkout(Path.cwd())
    history = open_history(policy.history, checkout)
    branch = policy.into(checkout.baseline_branch).baseline.branch
    # Runs of changes say how they fared, and not how the agent does.
    try:
        found = read_trend(history, TrendRequest(gate, agent, branch=branch))
    except UsageError:
        branch, found = "", read_trend(history, TrendRequest(gate, agent))
    return trend_html(found, home=home, branch=branch)
