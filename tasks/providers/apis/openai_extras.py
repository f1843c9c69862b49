"""OpenAI's model calls that answer no conversation: its compaction, and embeddings."""

from dataclasses import replace

from passgate.tasks.model.transcript import Usage
from passgate.tasks.providers.apis import values
from passgate.tasks.providers.apis.chat_completions import ChatCompletions
from passgate.tasks.providers.apis.interface import Context, Document, openai_usage, raise_error
from passgate.tasks.providers.apis.responses import Responses
from passgate.tasks.providers.exchange import ApiFormatError, ModelReply, ModelRequest


class Compaction(Responses):
    """The `Api` of POST /responses/compact: a model call that answers with the conversation in short."""

    name = "compaction"
    path_pattern = "responses/compact"
    schema_key = ""

    def read_reply(self, body: Document) -> ModelReply:
        """Its output repeats what was said and called before: nothing of it is new but what it used."""
        raise_error(body)
        values.sequence(body.get("output"), "output")
        model = values.clean(values.text_or_empty(body.get("model"), "model"))
        usage = openai_usage(body.get("usage"), tokens_in="input_tokens", tokens_out="output_tokens")
        return ModelReply(usage=usage, model=model)


class Embeddings(ChatCompletions):
    """The `Api` of POST /embeddings, which cost money and are no step."""

    name = "embeddings"
    path_pattern = "embeddings"
    limits = ()
    texts = ("input",)
    schema_key = ""
    is_step = False

    def read_request(self, body: Document) -> ModelRequest:
        """Nothing is written. Raises `ApiFormatError` without a model."""
        request = super().read_request(body)
        if not request.model:
            raise ApiFormatError("the request names no model")
        return replace(request, stream=False, max_tokens_out=0)

    def read_reply(self, body: Document) -> ModelReply:
        raise_error(body)
        usage = openai_usage(body.get("usage"), tokens_in="prompt_tokens", tokens_out="completion_tokens")
        known = Usage() if usage.tokens_in is None else Usage(tokens_in=usage.tokens_in, tokens_out=0)
        return ModelReply(usage=known)

    def _context(self, body: Document) -> Context:
        return (), ()
