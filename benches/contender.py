"""Names of the contenders: who they are and in which process they run."""

from __future__ import annotations

from dataclasses import dataclass

# Sessions of Spark: the environment of `make build`, and the one that the JVM connector is built for.
OUR_SESSION = "newest"
JVM_SESSION = "jvm"


@dataclass(frozen=True)
class Contender:
    """`session` names the process that is shared for a whole case; None: each measurement is a process of its own."""

    name: str
    module: str
    session: str | None = None


OURS = Contender("ours", "benches.contenders.ours")
DELTALAKE = Contender("deltalake", "benches.contenders.delta_rs")
SPARK_OURS = Contender("ours", "benches.contenders.spark_ours", OUR_SESSION)
SPARK_PARQUET = Contender("parquet", "benches.contenders.spark_parquet", OUR_SESSION)
SPARK_JVM = Contender("jvm", "benches.contenders.spark_jvm", JVM_SESSION)
JVM_PARQUET = Contender("parquet beside jvm", "benches.contenders.spark_parquet", JVM_SESSION)
