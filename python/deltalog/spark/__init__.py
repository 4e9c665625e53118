"""Delta tables in Spark at Spark's own speed.

Create the session with `configure`, or call `enable(spark)` once, and then use the format `deltalog`.

- In a classic session, Spark itself scans and writes Parquet files. Rust selects the files to read and commits the
  written files.
- Under Spark Connect, a Python Data Source with the same name reads and writes through Rust.
"""

from deltalog.spark._requirements import explain_missing_java, require_pyspark

# These checks run before any module imports PySpark, so that a missing PySpark gives a clear error.
require_pyspark()
explain_missing_java()

from deltalog.spark.configuration import configure  # noqa: E402
from deltalog.spark.session import enable  # noqa: E402
from deltalog.spark.tables import DeltaTable  # noqa: E402

__all__ = ["DeltaTable", "configure", "enable"]
