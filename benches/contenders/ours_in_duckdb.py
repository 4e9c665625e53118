"""deltalog as a source of DuckDB."""

from functools import partial

import deltalog.duckdb
from benches.contenders import duck

filter_rows = partial(duck.filter_rows, source_of=deltalog.duckdb.source)
join_rows = partial(duck.join_rows, source_of=deltalog.duckdb.source)
