"""Keeps rows on a Connect server for as long as a statement needs them."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame


@contextmanager
def checkpointed(rows: DataFrame) -> Iterator[DataFrame]:
    """Evaluates `rows` once. The executors keep them until the end of the `with` block; lost blocks are an error.

    PySpark would release them during garbage collection, with a request that was seen to hang forever after a failed
    query. So they are released here.
    """
    from pyspark.sql.connect.plan import RemoveRemoteCachedRelation

    kept = rows.localCheckpoint()
    plan: Any = kept._plan
    client: Any = rows.sparkSession.client
    try:
        yield kept
    finally:
        command = RemoveRemoteCachedRelation(plan).command(session=client)
        plan._relation_id = None
        with contextlib.suppress(PySparkException):  # The end of the session releases the rows at the latest.
            client.execute_command(command)
