"""A way to the models for agents that call none."""

from passgate.tasks.metering.access import Unmetered


class Metered(Unmetered):
    """What an agent is told of a meter that nobody calls in these tests."""

    def __init__(self, **variables: str) -> None:
        super().__init__()
        self.variables = {
            "OPENAI_BASE_URL": "http://127.0.0.1:1/t",
            "OPENAI_API_KEY": "of-the-trial",
        } | variables
