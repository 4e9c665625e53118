"""The errors that clients raise for errors of a Connect server with deltalog's catalog."""

import json
from typing import Any

import pytest
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]
from pyspark.sql.connect.client import core

from deltalog import errors
from deltalog.spark.connect.failures import install_conversion
from deltalog.spark.sql_states import sql_state

OURS = "io.deltalog.spark.DeltalogException"


def raised(state: str | None, **more: str) -> Any:
    """Returns the exception that a client raises for an error with this SQLSTATE."""
    install_conversion()
    info = ErrorInfo(reason=OURS, metadata={"classes": json.dumps([OURS, "java.lang.Exception"]), **more})
    if state is not None:
        info.metadata["sqlState"] = state
    client: Any = core
    return client.convert_exception(info, "the text", None)


@pytest.mark.every_spark
@pytest.mark.parametrize(
    "kind", [errors.AfterCommitError, errors.NotATableError, errors.CommitConflictError, errors.DeltaError]
)
def test_an_error_keeps_its_class_and_its_state(kind: type[errors.DeltaError]) -> None:
    """An error keeps its class and its SQLSTATE. In Spark 4.0, clients look up the error condition in a way that gives
    an empty one.
    """
    state = sql_state(kind("the text"))
    for more in ({}, {"errorClass": ""}):
        error = raised(state, **more)
        assert (type(error).__name__, str(error), error.getSqlState()) == (kind.__name__, "the text", state)


@pytest.mark.every_spark
def test_an_error_of_spark_stays_one() -> None:
    error = raised("42P01", errorClass="TABLE_OR_VIEW_NOT_FOUND", messageParameters="{}")
    assert not isinstance(error, errors.DeltaError)
    assert error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND"
