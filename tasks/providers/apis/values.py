"""Reading values that nobody vouches for: of the expected type, or an `ApiFormatError` that names the place."""

from typing import Any

from passgate.tasks.providers.exchange import ApiFormatError

_MAX_TOKENS = 10**12
_NAMES: dict[type, str] = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}


def wrong(place: str, value: Any, expected: str) -> ApiFormatError:
    """The error for a value that is not what was expected at this place."""
    return ApiFormatError(f"{place}: is {_NAMES.get(type(value), 'a number')}, not {expected}")


def mapping(value: Any, place: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise wrong(place, value, "an object")


def mapping_or_empty(value: Any, place: str) -> dict[str, Any]:
    return {} if value is None else mapping(value, place)


def sequence(value: Any, place: str) -> list[Any]:
    if isinstance(value, list):
        return value
    raise wrong(place, value, "a list")


def sequence_or_empty(value: Any, place: str) -> list[Any]:
    return [] if value is None else sequence(value, place)


def text(value: Any, place: str) -> str:
    if isinstance(value, str):
        return value
    raise wrong(place, value, "a text")


def text_or_empty(value: Any, place: str) -> str:
    return "" if value is None else text(value, place)


def count(value: Any, place: str) -> int:
    """A whole number that is not negative."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
        return value
    raise wrong(place, value, "a whole number from 0")


def count_or_none(value: Any, place: str) -> int | None:
    return None if value is None else count(value, place)


def truth_or_false(value: Any, place: str) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise wrong(place, value, "true or false")
