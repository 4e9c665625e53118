"""Delta tables in Spark at Spark's own speed, with no jar: call `enable(spark)` once, then use the format `deltalog`.

- In a classic session Spark scans and writes Parquet itself; Rust plans which files and commits them.
- Under Spark Connect the same name is served by a Python Data Source, which reads and writes through Rust.
"""

from deltalog.spark._requirements import require_pyspark, say_when_java_is_missing

require_pyspark()
say_when_java_is_missing()

from deltalog.spark.session import enable  # noqa: E402 (a clear error about PySpark must come before anything that imports it)
from deltalog.spark.tables import DeltaTable  # noqa: E402

__all__ = ["DeltaTable", "enable"]
