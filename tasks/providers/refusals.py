"""What a provider says when it refuses a call, and whose doing that is.

The request's own: an unknown model, a malformed body, a huge prompt. Not the request's: the account, its money, a
filter, the region. Providers tell both with the same statuses.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

_UNAUTHORISED: Final = frozenset({401, 402, 403, 407, 451})
_NOT_FOUND: Final = frozenset({404, 410})
_OF_REQUESTS: Final = frozenset({400, 404, 405, 410, 413, 414, 415, 422, 431})
_REQUEST_CODES: Final = frozenset(
    {"invalid_request_error", "request_too_large", "context_length_exceeded", "string_above_max_length"}
    | {"model_not_found", "not_found_error", "invalid_image", "image_parse_error"}
)
_CODE_KEYS: Final = ("code", "type", "status", "reason", "param")
_MOST_READ: Final = 16_000  # Characters

_NO_MONEY: Final = re.compile(
    r"insufficient[ _](?:quota|balance|credits?|funds)|exceeded_current_quota|billing_(?:hard_limit|not_active|error)"
    r"|credit balance|(?:spend(?:ing)?|credit|budget) limit|(?:used all|out of|no) (?:available |remaining )?credits"
    r"|payment[ _]required|arrearage|overdue|budget(?: has been|_)exceeded|余额不足|欠费",
    re.IGNORECASE,
)
_OF_THE_ACCOUNT: Final = re.compile(
    r"billing|quota|usage limits?\b|good standing|(?:invalid|expired|incorrect)[ _]api[ _]key|api[ _]key[ _]\w*invalid"
    r"|api key (?:not valid|expired)|(?:account|organi[sz]ation|project|team)\b.{0,40}\b(?:disabled|deactivated"
    r"|suspended|restricted|not active|archived)|organi[sz]ation_restricted|account_deactivated"
    r"|content[ _-]?(?:management )?(?:filter|polic)|responsible_?ai|flagged|moderation|safety system|usage polic"
    r"|data_inspection_failed|inappropriate content|content exists risk|prohibited_content|invalid_prompt"
    r"|(?:country|region|territory|location).{0,30}(?:not supported|unsupported)|unsupported_country"
    r"|not (?:supported|available) in your (?:country|region|location)|must be verified|data policy"
    r"|terms(?:_required| acceptance)|access[ _]denied|only authorized|not allowed to access"
    r"|(?:security|expired) ?token|敏感",
    re.IGNORECASE | re.DOTALL,
)
_NEAR: Final = 80  # Characters that are searched for the word before another
_BEFORE: Final = re.compile(r"((?:[^\s\"'`]+\s+)?)([^\s\"'`]*)$")
_AFTER: Final = re.compile(r"^([^\s\"'`]*)((?:\s+[^\s\"'`]+)?)")
_MODEL: Final = re.compile(r"\b(?:models?|deployment)\b|model_not_found", re.IGNORECASE)
_NO_MODEL: Final = re.compile(
    r"model_not_found|(?:invalid|unknown|no such) model|\bmodel\b.{0,120}(?:not found|(?:not|n't) exist)",
    re.IGNORECASE | re.DOTALL,
)
_OPTION: Final = re.compile(
    r"(?:extra|unknown|unrecogni[sz]ed|unexpected|unsupported|additional)[ _](?:\w+[ _])?"
    r"(?:field|key|option|param|argument|input|propert)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider answered in place of a reply."""

    status: int | None  # `None` of an error inside a reply with status 200
    text: str  # All that it said, at most its beginning
    codes: frozenset[str]  # In lower case

    @classmethod
    def from_reply(cls, status: int, body: bytes) -> "Refusal":
        """Read the body of an answer, of any shape."""
        text = body[:_MOST_READ].decode("utf-8", "replace")
        try:
            document = json.loads(body)
            if "\\u" in text:
                # As a reader wants it, and without halves of characters, which nothing can write
                text = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace").decode()[:_MOST_READ]
        except (ValueError, RecursionError):
            document = None
        return cls(status, text, frozenset(_codes(document)))

    @classmethod
    def from_error(cls, error: Any) -> "Refusal":
        """Read the error inside a reply."""
        text = error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str)
        codes = frozenset(_codes(error))
        status = next((int(code) for code in codes if code.isdecimal() and len(code) == len("400")), None)
        return cls(status, text[:_MOST_READ], codes)

    @property
    def lacks_money(self) -> bool:
        """Whether the account has nothing left to pay with: another attempt comes to the same."""
        return bool(_NO_MONEY.search(self.text))

    @property
    def is_not_found(self) -> bool:
        """Whether there is no such model or no such endpoint."""
        return self.status in _NOT_FOUND

    @property
    def names_model(self) -> bool:
        """Whether it is the model that does not exist."""
        return bool((_MODEL if self.is_not_found else _NO_MODEL).search(self.text))

    def blames_account(self, request: str) -> bool:
        """Return whether the account, a filter or the region is the reason. Words of the request, which a provider may
        repeat, are no reason; the same words in a sentence of the provider's own are one.
        """
        if self.status in _UNAUTHORISED:
            return True
        said = request.lower()
        found = (match for words in (_NO_MONEY, _OF_THE_ACCOUNT) for match in words.finditer(self.text))
        return any(not _is_repeated(match, said) for match in found)

    def blames_request(self, request: str) -> bool:
        """Return whether the request provokes it, no matter who sends it."""
        told = self.status in _OF_REQUESTS or not self.codes.isdisjoint(_REQUEST_CODES)
        return told and not self.blames_account(request)

    def names(self, keys: Collection[str]) -> bool:
        """Return whether the refusal names one of these keys of a request."""
        return any(re.search(rf"\b{re.escape(key)}\b", self.text) for key in keys)

    def may_blame_option(self, keys: Collection[str]) -> bool:
        """Return whether the provider may not know a key of the request, one of these."""
        return bool(self.status in _OF_REQUESTS and keys and (self.names(keys) or _OPTION.search(self.text)))


def _is_repeated(found: re.Match[str], said: str) -> bool:
    """Return whether a provider repeats what was found from the request: with the words beside it inside of quotation
    marks, or as a value, if that is the model or stands alone.
    """
    before = found.string[max(0, found.start() - _NEAR) : found.start()].lower()
    after = found.string[found.end() : found.end() + _NEAR].lower()
    # Both expressions match every text.
    (word_before, head), (tail, word_after) = _BEFORE.findall(before)[0], _AFTER.findall(after)[0]
    word = f"{head}{found[0].lower()}{tail}"
    is_model = re.search(rf'"model":\s*"{re.escape(word.strip(".,:;"))}"', said) is not None
    is_alone = not (re.search(r"\w $", before) and re.match(r" \w", after))
    return f"{word_before}{word}{word_after}" in said or is_model or (is_alone and f'"{word}"' in said)


def _codes(document: Any) -> list[str]:
    """Return every text or number that is a code in a document."""
    found, waiting = [], [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, dict):
            found += [str(one[key]).lower() for key in _CODE_KEYS if isinstance(one.get(key), str | int)]
            waiting.extend(one.values())
    return found
