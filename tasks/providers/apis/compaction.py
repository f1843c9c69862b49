"""OpenAI's compaction of a conversation: a model call that answers with the conversation in short."""

from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.interface import Document, openai_usage, raise_error
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import ModelReply


class Compaction(Responses):
    """The `Api` of POST /responses/compact."""

    name = "compaction"
    path = "responses/compact"

    def read_reply(self, body: Document) -> ModelReply:
        """Its output repeats what was said and called before: nothing of it is new but what it used."""
        raise_error(body)
        values.sequence(body.get("output"), "output")
        model = values.clean(values.text_or_empty(body.get("model"), "model"))
        usage = openai_usage(body.get("usage"), tokens_in="input_tokens", tokens_out="output_tokens")
        return ModelReply(usage=usage, model=model)
