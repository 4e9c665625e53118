"""The name `delta` for the format `deltalog`, in a JVM (`DeltaName.java`)."""

from typing import Any

from deltalog._internal import InvalidArgumentError
from deltalog.spark.jvm.gateway import Jvm

NAME = "delta"
# The setting of a session.
SETTING = "spark.deltalog.aliasDelta"


def check(jvm: Jvm, session: Any) -> None:
    """Raises an error if another source has the name."""
    owner = jvm.static("DeltaName", "owner", session)
    if owner is not None:
        raise taken(f"is {owner} in this session, from")


def taken(owner: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"alias_delta=True is not possible: the format delta {owner} the JVM connector or another package; "
        "omit alias_delta, or remove the jar of that package"
    )


def choose(jvm: Jvm, session: Any, wanted: bool) -> None:
    """Says whether the format has the name in a session and in later ones."""
    jvm.static("DeltaName", "choose", session, wanted)
