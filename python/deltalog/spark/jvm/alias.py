"""Lets the format `deltalog` also be called `delta` in a JVM (`DeltaName.java`)."""

from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.gateway import Jvm

NAME = "delta"
# The argument of `enable` that requires the name.
WISH = "alias_delta=True"
# The setting of a session for the name.
SETTING = "spark.deltalog.aliasDelta"


def check(jvm: Jvm, session: Any) -> None:
    """Raises an error if another source has the name."""
    refusal = jvm.static("DeltaName", "refusal", WISH, session)
    if refusal is not None:
        raise InvalidArgumentError(refusal)


def choose(jvm: Jvm, session: Any, wanted: bool) -> None:
    """Sets whether the format has the name `delta` in a session and in later ones."""
    jvm.static("DeltaName", "choose", session, wanted)
