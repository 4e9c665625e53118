"""A panic in Rust code becomes an `InternalError`, no matter which function Python has called."""

from typing import Any

import pyarrow
import pytest

import deltalog
from deltalog import _internal

panic: Any = getattr(_internal, "_panic", None)
pytestmark = pytest.mark.skipif(panic is None, reason="the binary was not built for tests")


@pytest.mark.parametrize(("place", "message"), [("call", "a test of calls"), ("thread", "a test of threads")])
def test_panics_are_our_errors(place: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        panic(place)
    error = caught.value
    assert type(error) is deltalog.InternalError
    assert isinstance(error, deltalog.DeltaError)
    assert "panics.rs:" in str(error)
    assert "report" in (error.hint or "")


def test_a_panic_while_another_error_is_handled() -> None:
    try:
        raise KeyError("first")
    except KeyError:
        with pytest.raises(deltalog.InternalError, match="a test of calls") as caught:
            panic("call")
    assert isinstance(caught.value.__context__, KeyError)


def test_a_panic_of_a_stream_is_an_error_of_its_reader() -> None:
    reader = pyarrow.RecordBatchReader.from_stream(panic("stream"))
    assert reader.read_next_batch().num_rows == 0
    with pytest.raises(pyarrow.ArrowException, match=r"InternalError: .*a test of streams") as caught:
        reader.read_next_batch()
    assert isinstance(caught.value, Exception)
    with pytest.raises(StopIteration):
        reader.read_next_batch()
