"""deltalog as the source of Polars LazyFrames."""

from functools import partial

import deltalog.polars
from benches.contenders import polars_lazy

filter_rows = partial(polars_lazy.filter_rows, frame_of=deltalog.polars.scan)
join_rows = partial(polars_lazy.join_rows, frame_of=deltalog.polars.scan)
