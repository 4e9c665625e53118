"""Finds out whether a Connect server uses deltalog's catalog."""

import weakref
from typing import Any

from deltalog.spark.connect.failures import install_conversion
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.jvm.jars import PACKAGE

CATALOG = "spark.sql.catalog.spark_catalog"

_asked: "weakref.WeakKeyDictionary[Any, bool]" = weakref.WeakKeyDictionary()


def has_our_catalog(spark: Any) -> bool:
    """Returns whether a Connect session uses deltalog's catalog. The server then executes everything as a classic
    session would.

    Otherwise the server has the format `deltalog` only as a Python Data Source, or does not have it.
    """
    if spark not in _asked:
        # deltalog sets this setting when the session's analyzer is created, so the analyzer must be used first.
        spark.range(0).schema  # noqa: B018
        _asked[spark] = _catalog(spark).startswith(f"{PACKAGE}.")
        if _asked[spark]:
            install_conversion()
    return _asked[spark]


def without_extensions(spark: Any) -> InvalidArgumentError:
    """Returns the error for a server that has deltalog's format, but uses another catalog."""
    return InvalidArgumentError(
        f"the server of this session has the jar of deltalog, but its catalog {CATALOG} is {_catalog(spark)}: start "
        f"the server with spark.sql.extensions={PACKAGE}.DeltalogExtensions and without that setting"
    )


def _catalog(spark: Any) -> str:
    return str(spark.conf.get(CATALOG, ""))
