"""The APIs that agents and providers speak."""

from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.compaction import Compaction
from passgate.tasks.providers.apis.interface import Api
from passgate.tasks.providers.apis.messages import Messages
from passgate.tasks.providers.apis.responses import Responses

OPENAI_APIS: tuple[Api, ...] = (
    ChatCompletions(),
    Responses(),
    Compaction(),
)  # Those of OpenAI, and of everything compatible with it

ANTHROPIC_APIS: tuple[Api, ...] = (Messages(),)  # Those of Anthropic, and of everything compatible with it

__all__ = ["ANTHROPIC_APIS", "OPENAI_APIS"]
