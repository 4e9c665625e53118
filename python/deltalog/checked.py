"""Checks arguments by the annotations of their parameters: strings, booleans, one of several words, or objects of
Spark.

Other parameters are checked by the functions of `deltalog.arguments`, in the same style: the message names the
parameter and the value, and the hint states what to pass.
"""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, ParamSpec, TypeGuard, TypeVar, Union, get_args, get_origin

from deltalog.errors import wrong_argument

__all__ = ["checked", "checks_arguments", "is_of_spark", "is_text"]

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class", bound=type)


class _Expected(NamedTuple):
    """The types that a parameter accepts."""

    accepts: Callable[[object], bool]
    text: str


def checked(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Makes a public function check its arguments by their annotations."""
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    expected = {
        name: found
        for name, parameter in parameters.items()
        if (found := _expected(parameter.annotation)) is not None
    }
    if not expected:
        return function

    @functools.wraps(function)
    def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        # Python itself raises an error if there are too many arguments.
        for name, value in [*zip(names, arguments, strict=False), *named.items()]:
            check = expected.get(name)
            if check is not None and not check.accepts(value):
                raise wrong_argument(name, value, check.text)
        return function(*arguments, **named)

    return call


def checks_arguments(kind: _Class) -> _Class:
    """Makes the public methods of a class check their arguments."""
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name not in ("__init__", "__call__"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            setattr(kind, name, type(member)(checked(member.__func__)))
        elif inspect.isfunction(member):
            setattr(kind, name, checked(member))
    return kind


def _expected(annotation: Any) -> _Expected | None:
    """Returns the types that an annotation accepts; None for annotations that this module cannot check."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    parts = get_args(annotation) if is_union else (annotation,)
    kinds = [part for part in parts if part is not type(None)]
    found = _expected_of(kinds[0]) if len(kinds) == 1 else _of_spark(kinds)
    if found is None or len(kinds) == len(parts):
        return found
    accepts, text = found
    return _Expected(lambda value: value is None or accepts(value), f"{text}, or None")


def _expected_of(kind: Any) -> _Expected | None:
    if _is_of_spark(kind):
        return _of_spark([kind])
    if kind is str:
        return _Expected(is_text, "text")
    if kind is bool:
        return _Expected(_is_truth, "True or False")
    if get_origin(kind) is Literal:
        words = get_args(kind)
        known = {word.lower() for word in words}
        *first, last = map(repr, words)
        text = f"{', '.join(first)} or {last}" if first else last
        return _Expected(lambda value: isinstance(value, str) and value.lower() in known, text)
    return None


def is_text(value: object) -> TypeGuard[str]:
    """Returns whether a value is a string that can be encoded in UTF-8. A string with a lone surrogate cannot."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_of_spark(kind: Any) -> bool:
    return isinstance(kind, type) and kind.__module__.startswith("pyspark.")


def _of_spark(kinds: list[Any]) -> _Expected | None:
    """Returns the accepted types of a parameter that takes objects of Spark's classes, or strings instead."""
    if not all(kind is str or _is_of_spark(kind) for kind in kinds):
        return None
    names = ["text" if kind is str else f"a {kind.__name__}" for kind in kinds]
    return _Expected(lambda value: any(is_of_spark(value, kind) for kind in kinds), " or ".join(names))


def is_of_spark(value: object, kind: type) -> bool:
    """Returns whether a value is an instance of a class, or of the class with the same name in Spark Connect."""
    return isinstance(value, kind) or any(
        base.__name__ == kind.__name__ and base.__module__.startswith("pyspark.sql.connect.")
        for base in type(value).__mro__
    )


def _is_truth(value: object) -> bool:
    """Returns whether a value is a boolean of Python or numpy; the compiled module accepts both."""
    return isinstance(value, bool) or (type(value).__module__, type(value).__name__) in _NUMPYS


_NUMPYS = {("numpy", "bool"), ("numpy", "bool_")}
