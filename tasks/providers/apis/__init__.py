"""The three APIs that agents and providers speak, behind one protocol."""

from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import Api

OPENAI_APIS: tuple[Api, ...] = (ChatCompletions(), Responses())
"""Those of OpenAI, and of everything compatible with it."""

ANTHROPIC_APIS: tuple[Api, ...] = (Messages(),)
"""Those of Anthropic, and of everything compatible with it."""

__all__ = ["ANTHROPIC_APIS", "OPENAI_APIS"]
