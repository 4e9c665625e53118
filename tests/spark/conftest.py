"""Fixtures of the Spark tests. All tests of this folder share one classic session."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from tests.conftest import missing
from tests.stores.mini_hdfs import MiniHdfs, is_installed

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
ANSWERS_FROM_LOG = "io.deltalog.spark.AnswersFromLog"

# Quick test modules that depend the most on the internals of a Spark release. All tests run on the newest Spark.
# On other releases (`make test-wheel`), only these modules run, without tests that are marked as `newest` or `slow`,
# and the tests of other modules that are marked as `every_spark`.
EVERY_SPARK = {
    "test_builders",
    "test_catalog_alter",
    "test_catalog_definitions",
    "test_catalog_writes",
    "test_read",
    "test_sql",
    "test_statements",
    "test_stored_values",
    "test_stream_source",
    "test_write",
}

# On releases between the oldest and the newest, only two of these modules run, and a few tests of the other modules.
# All other tests count as thorough on these releases.
SMOKE = {
    "test_catalog_writes",
    "test_sql",
    "test_delete_removes_the_rows_for_which_the_condition_is_true",
    "test_every_entry_point_returns_columns_in_the_tables_order",
    "test_filters_on_partition_columns_are_exact",
    "test_merge_with_all_clauses",
    "test_the_scan_is_sparks_own_parquet_scan",
}

# On the oldest Spark, these modules run as well, because its Connect, plans and rules differ the most.
# In CI, each of their tests runs only for about a quarter of the changes (see `tests/slices.py`).
OLDEST = {
    "test_catalog_reads",
    "test_connect",
    "test_connect_catalog",
    "test_deleted_rows",
    "test_entry_columns",
    "test_foreign_expressions",
    "test_insert_evolution",
    "test_job_output",
    "test_jvm",
    "test_large_expressions",
    "test_later_fields",
    "test_log_answers",
    "test_messages",
    "test_own_rows",
    "test_pandas_api",
    "test_portable",
    "test_portable_readers",
    "test_portable_streams",
    "test_procedures",
    "test_session",
    "test_session_kinds",
    "test_statement_commits",
    "test_statement_scans",
    "test_statement_values",
    "test_stream_faults",
    "test_void_columns",
}


def hadoop_aws() -> list[Path]:
    """Returns the jars of Hadoop's S3 connector, which are fetched only for the newest Spark."""
    jars = sorted(Path(__file__).parents[2].glob(".cache/hadoop-aws/*.jar"))
    versions = {jar.stem.removeprefix("hadoop-aws-") for jar in jars if jar.stem.startswith("hadoop-aws-")}
    of_spark = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    return jars if versions == {jar.stem.removeprefix("hadoop-client-api-") for jar in of_spark} else []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = (EVERY_SPARK | OLDEST) - {module.stem for module in Path(__file__).parent.rglob("test_*.py")}
    if missing:
        raise pytest.UsageError(
            f"EVERY_SPARK or OLDEST names modules that do not exist: {', '.join(sorted(missing))}"
        )
    spark = os.environ.get("DELTALOG_SPARK")
    for item in items:
        if spark == "between" and SMOKE.isdisjoint((item.path.stem, item.name.partition("[")[0])):
            item.add_marker(pytest.mark.thorough(every=0))
        if any(map(item.get_closest_marker, ("newest", "slow"))):
            continue
        if item.path.stem in EVERY_SPARK:
            item.add_marker(pytest.mark.every_spark)
        elif item.path.stem in OLDEST:
            item.add_marker(pytest.mark.oldest)
        if (
            spark == "oldest"
            and item.get_closest_marker("oldest")
            and not item.get_closest_marker("thorough")
        ):
            item.add_marker(pytest.mark.thorough(every=4))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Returns a session in which aggregates read files, because counts in tests must not be answered from the log."""
    builder = SparkSession.builder.master("local[2]").appName("deltalog tests")
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.session.timeZone": "America/New_York",
        EXCLUDED_RULES: ANSWERS_FROM_LOG,
        "spark.jars": ",".join(map(str, hadoop_aws())),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield deltalog.spark.enable(session)
    session.stop()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniHdfs]:
    """Starts an HDFS cluster."""
    if not is_installed():
        missing("no HDFS cluster is installed: make .cache/hdfs/.complete")
    with MiniHdfs(tmp_path_factory.mktemp("hdfs")) as cluster:
        yield cluster


@pytest.fixture
def answers_from_log(spark: SparkSession) -> Iterator[None]:
    """Lets the log answer aggregates, as it does for users."""
    spark.conf.set(EXCLUDED_RULES, "")
    yield
    spark.conf.set(EXCLUDED_RULES, ANSWERS_FROM_LOG)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Returns a path for a test's table. It contains a character that must be escaped in URLs."""
    return str(tmp_path / "a table")
