"""Makes deltalog's errors catchable as PySpark's errors, too.

The class of such an error has two parents: its class in `deltalog.errors`, and one of PySpark's classes, which is
`AnalysisException` for a wrong call, and `PySparkException` for any other error. So both `except NotATableError` and
`except AnalysisException` catch a `NotATableError`.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from pyspark.errors import AnalysisException, PySparkException

from deltalog._internal import (
    DeltaError,
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.checked import checked
from deltalog.errors import TableAlreadyExistsError, VersionNotFoundError
from deltalog.spark.sql_states import sql_state

_WRONG_CALLS = (
    InvalidArgumentError,
    NotATableError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)

_classes: dict[type[DeltaError], type[DeltaError]] = {}

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def as_pyspark_error(error: BaseException) -> BaseException:
    """Returns a `DeltaError` as an error that is also PySpark's. Other errors are returned unchanged."""
    if isinstance(error, DeltaError) and not isinstance(error, PySparkException):
        error.__class__ = _class_of(type(error))
    return error


def raises_pyspark_errors(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorates a public function so that it checks its arguments, and raises errors that are also PySpark's."""

    checking = checked(function)

    @functools.wraps(function)
    def call(*arguments: _Parameters.args, **named: _Parameters.kwargs) -> _Result:
        try:
            return checking(*arguments, **named)
        except DeltaError as error:
            as_pyspark_error(error)
            raise

    return call


def _class_of(kind: type[DeltaError]) -> type[DeltaError]:
    if kind not in _classes:
        _classes[kind] = _create_class(kind)
    return _classes[kind]


def _create_class(kind: type[DeltaError]) -> type[DeltaError]:
    parent = AnalysisException if issubclass(kind, _WRONG_CALLS) else PySparkException
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (_Members, kind, parent), {**names, "_plain": kind})


class _Members:
    """Replacements for the members of `PySparkException` that depend on its `__init__`.

    `__init__` never runs for these errors, because `as_pyspark_error` only changes the class of an existing error.
    """

    _plain: type[DeltaError]
    _errorClass = None  # noqa: N815 (PySpark's name)
    _messageParameters = None  # noqa: N815
    _contexts: list[Any] = []  # noqa: RUF012 (always empty)

    def __str__(self) -> str:
        return BaseException.__str__(self)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._plain, self.args, dict(self.__dict__))  # type: ignore[attr-defined]

    @property
    def _message(self) -> str:
        return str(self)

    def getMessage(self) -> str:  # noqa: N802 (as PySpark)
        return str(self)

    def getSqlState(self) -> str | None:  # noqa: N802
        return sql_state(self)  # type: ignore[arg-type]

    def getBreakingChangeInfo(self) -> None:  # noqa: N802
        return None


def _restored(
    kind: type[DeltaError], arguments: tuple[Any, ...], attributes: dict[str, Any]
) -> BaseException:
    error = kind(*arguments)
    error.__dict__.update(attributes)
    return as_pyspark_error(error)
