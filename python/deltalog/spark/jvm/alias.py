"""Lets the format `deltalog` also be called `delta` in a JVM (`DeltaName.java`)."""

from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.gateway import Jvm

NAME = "delta"
# The argument of `enable` that requires the name `delta`.
WISH = "alias_delta=True"
# The session setting for the name `delta`.
SETTING = "spark.deltalog.aliasDelta"


def check(jvm: Jvm, session: Any) -> None:
    """Raises an error if another data source has the name `delta`."""
    refusal = jvm.static("DeltaName", "refusal", WISH, session)
    if refusal is not None:
        raise InvalidArgumentError(refusal)


def choose(jvm: Jvm, session: Any, wanted: bool) -> None:
    """Sets whether the format is also called `delta`, in a session and in sessions that are created later."""
    jvm.static("DeltaName", "choose", session, wanted)
