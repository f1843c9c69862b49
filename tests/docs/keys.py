"""The keys of the files that people write, from the models."""

import types
from collections.abc import Collection, Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from passgate.tasks.model.grader_options import GraderOptions


def models_in(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models that a field may hold, each with what a path has for the way to it: `[]` for a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "", annotation
    way = "[]" if get_origin(annotation) is tuple else ".*" if get_origin(annotation) is dict else ""
    if get_origin(annotation) in {tuple, dict, Union, types.UnionType} or hasattr(annotation, "__metadata__"):
        for inner in get_args(annotation):
            for further, model in models_in(inner):
                yield way + further, model


def inner_models(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models that a field may hold, but for graders: they have pages of their own, and graders in them."""
    for way, model in dict.fromkeys(models_in(annotation)):
        if not issubclass(model, GraderOptions):
            yield way, model


def paths(model: type[BaseModel]) -> Iterator[str]:
    """Yield every key of a model and of the models in it, as in `reference.counterexamples[].name`.

    A model that occurs again, such as a hook, has its keys where it occurs first.
    """
    yield from (path for path, _ in _fields(model, set()))


def _fields(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        yield name, field
        for way, inner in inner_models(field.annotation):
            if inner not in seen:
                seen.add(inner)
                yield from ((f"{name}{way}.{path}", one) for path, one in _fields(inner, seen))


def own_names(model: type[BaseModel], without: Collection[str] = ()) -> set[str]:
    """The keys of a model, without these of its own, and of what it holds, by their last names."""
    return {path.rpartition(".")[2] for path in paths(model) if path not in without}


def defaults(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield every key whose default is a number, a text or a truth value, with that as a page writes it."""
    for path, field in _fields(model, set()):
        match field.default:
            case bool() | str() as default if default != "":
                yield path, f"`{str(default).lower() if isinstance(default, bool) else default}`"
            case int() | float() as default:
                yield path, f"{default:g}"
