"""deltalog as a table provider of DataFusion."""

from functools import partial
from typing import Any

import deltalog_datafusion
from datafusion import SessionContext

from benches.contenders import datafusion_sql


def _with_table(table: str) -> Any:
    context = SessionContext()
    context.register_table(datafusion_sql.NAME, deltalog_datafusion.table(table))
    return context


filter_rows = partial(datafusion_sql.filter_rows, with_table=_with_table)
join_rows = partial(datafusion_sql.join_rows, with_table=_with_table)
