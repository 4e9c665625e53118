"""Lists the contenders: their names, their modules, and the process in which each runs.

A contender that is not a Python package is a separate program. Its module starts the program, which measures and
reports its own laps.
"""

from __future__ import annotations

from dataclasses import dataclass

# The names of shared Spark sessions. The first one uses the environment of `make build`.
# The second one uses the environment for which the JVM connector is built.
OUR_SESSION = "newest"
JVM_SESSION = "jvm"


@dataclass(frozen=True)
class Contender:
    """A contender. `session` names a process that all measurements of a case share. If it is None, each measurement has
    its own process.
    """

    name: str
    module: str
    session: str | None = None
    fresh: bool = False
    """Starts the session in a new process for each measurement."""
    program: bool = False
    """Runs the program of `benches/kernel`. The environment variable `DELTALOG_BENCH_KERNEL` contains its path."""
    datafusion: bool = False
    """Runs in the environment that has DataFusion."""


OURS = Contender("ours", "benches.contenders.ours")
DELTALAKE = Contender("deltalake", "benches.contenders.delta_rs")
KERNEL = Contender("delta_kernel", "benches.contenders.delta_kernel", program=True)
KERNEL_LEAN = Contender("delta_kernel lean", "benches.contenders.delta_kernel_lean", program=True)
POLARS = Contender("polars", "benches.contenders.polars_lazy")
DUCKDB = Contender("duckdb", "benches.contenders.duck")
OURS_IN_POLARS = Contender("ours", "benches.contenders.ours_in_polars")
OURS_IN_DUCKDB = Contender("ours", "benches.contenders.ours_in_duckdb")
DATAFUSION = Contender("datafusion", "benches.contenders.datafusion_sql", datafusion=True)
OURS_IN_DATAFUSION = Contender("ours", "benches.contenders.ours_in_datafusion", datafusion=True)
DELTALAKE_IN_DATAFUSION = Contender(
    "deltalake", "benches.contenders.deltalake_in_datafusion", datafusion=True
)
DELTALAKE_IN_POLARS = Contender("deltalake", "benches.contenders.deltalake_in_polars")
DELTALAKE_IN_DUCKDB = Contender("deltalake", "benches.contenders.deltalake_in_duckdb")
ARROW_DATASET = Contender("pyarrow.dataset", "benches.contenders.arrow_dataset")
SPARK_OURS = Contender("ours", "benches.contenders.spark_ours", OUR_SESSION)
SPARK_EXECUTORS = Contender("executors", "benches.contenders.spark_executors", OUR_SESSION)
SPARK_PARQUET = Contender("parquet", "benches.contenders.spark_parquet", OUR_SESSION)
SPARK_JVM = Contender("jvm", "benches.contenders.spark_jvm", JVM_SESSION)
START_OURS = Contender("ours", "benches.contenders.spark_ours", OUR_SESSION, fresh=True)
START_PARQUET = Contender("parquet", "benches.contenders.spark_parquet", OUR_SESSION, fresh=True)
START_JVM = Contender("jvm", "benches.contenders.spark_jvm", JVM_SESSION, fresh=True)
JVM_PARQUET = Contender("parquet beside jvm", "benches.contenders.spark_parquet", JVM_SESSION)
