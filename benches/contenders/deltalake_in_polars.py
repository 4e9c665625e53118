"""`deltalake` as the source of Polars LazyFrames: `scan_delta`."""

from functools import partial

import deltalake  # noqa: F401 (`scan_delta` would load it within the measured time)
import polars as pl

from benches.contenders import polars_lazy

filter_rows = partial(polars_lazy.filter_rows, frame_of=pl.scan_delta)
join_rows = partial(polars_lazy.join_rows, frame_of=pl.scan_delta)
