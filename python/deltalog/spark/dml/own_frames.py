"""Remembers the DataFrames that a `DeltaTable` has returned, because its statements may refer to their columns."""

import uuid
from typing import Any

from pyspark.sql import DataFrame


class OwnFrames:
    """The DataFrames that a `DeltaTable` has returned."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        """The id that marks the columns of these frames in a classic session (`OwnColumns.java`)."""
        self.plan_ids: set[int] = set()
        """The ids of these frames' plans under Spark Connect."""

    def note(self, frame: DataFrame) -> None:
        """Remembers a DataFrame that is returned to the user."""
        plan: Any = getattr(frame, "_plan", None)
        if plan is not None:
            self.plan_ids.add(plan._plan_id)
