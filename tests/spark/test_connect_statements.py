"""DELETE, UPDATE and MERGE have the same effects under Spark Connect as in a classic session, or are refused."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog
import deltalog.tables
from deltalog import DeltaTable
from tests.crafted import CraftedTable, field
from tests.spark.connect_server import run_client, running_server
from tests.spark.statement_tables import KINDS as TABLES
from tests.spark.statement_tables import OLD, created, files, rows
from tests.spark.verb_scenarios import SCENARIOS

pytest.importorskip("grpc")
pytest.importorskip("pandas")

ROOT = Path(__file__).parents[2]
# The statements to try with each kind of table.
KINDS = {
    "vectors": list(SCENARIOS),
    "mapped with vectors": ["merge"],
    "tracked": ["delete", "update", "merge"],
}
# For these tables only the rows are compared, because rows may be divided into files differently.
COMPARED = ("Rows",)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    yield from running_server(tmp_path_factory)


def client(address: str, directory: Path, code: str) -> list[str]:
    """Runs a client, and returns the lines that it prints."""
    begin = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
from pyspark.sql import SparkSession, functions as sf
import deltalog, deltalog.spark
from deltalog.tables import DeltaTable
from tests.spark.verb_scenarios import SCENARIOS
spark = deltalog.spark.enable(SparkSession.builder.remote({address!r}).getOrCreate())
def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__ + ": " + str(error).splitlines()[0]
"""
    done = run_client(begin + code, directory)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


def described(path: Path) -> list[dict[str, Any]]:
    """Describes each version of a table in a form that can be compared."""
    found = []
    table = DeltaTable(path)
    for commit in reversed(table.history()):
        metrics = commit.get("operationMetrics", {})
        compared = {name: metrics[name] for name in metrics if any(part in name for part in COMPARED)}
        found.append(
            {
                "operation": commit["operation"],
                "metrics": compared if commit["version"] > 0 else {},
                "parameters": sorted(commit["operationParameters"]) if commit["version"] > 0 else [],
                "readVersion": commit.get("readVersion"),
            }
        )
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_verbs_do_the_same_as_in_a_classic_session(
    spark: SparkSession, server: tuple[str, Path], tmp_path: Path, kind: str
) -> None:
    classic, connect = tmp_path / "classic", tmp_path / "connect"
    created(spark, str(classic), kind)
    shutil.copytree(classic, connect)
    code = f"""
table = DeltaTable.forPath(spark, {str(connect)!r})
for name in {KINDS[kind]!r}:
    [answer] = SCENARIOS[name](spark, table).collect()
    print(json.dumps([name, answer.asDict()]))
"""
    found = [json.loads(line) for line in client(server[0], tmp_path, code)]
    table = deltalog.tables.DeltaTable.forPath(spark, str(classic))
    expected = []
    for name in KINDS[kind]:
        [answer] = SCENARIOS[name](spark, table).collect()
        expected.append([name, answer.asDict()])
    assert found == expected
    assert described(connect) == described(classic)
    assert rows(str(connect)) == rows(str(classic))
    if kind == "tracked":
        assert tracked(connect) == tracked(classic)


def tracked(path: Path) -> list[Any]:
    """Returns the row ids and row commit versions of the rows that the statements have not inserted."""
    found = pa.table(DeltaTable(path).to_arrow(row_ids=True)).to_pylist()
    return sorted(
        (row["_row_id"], row["_row_commit_version"], str(row["id"])) for row in found if row["_row_id"] < 300
    )


@pytest.mark.newest
@pytest.mark.thorough
def test_statements_that_fail_leave_the_table_as_it_is(
    spark: SparkSession, server: tuple[str, Path], tmp_path: Path
) -> None:
    """A statement that fails does not change the table. The tables have a single file, so that there is a single task:
    a second task might end just as the job fails.
    """
    paths = {kind: tmp_path / kind for kind in ("vectors", "rewriting")}
    for kind, path in paths.items():
        data = spark.createDataFrame(OLD, "id long, p int, s string").coalesce(1)
        data.write.format("deltalog").options(**TABLES[kind][0]).save(str(path))
    feed = tmp_path / "feed"
    created(spark, str(feed), "vectors")
    DeltaTable(feed).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    typed = tmp_path / "typed"
    spark.sql(f"CREATE TABLE deltalog.`{typed}` (id LONG, c CHAR(3)) USING deltalog")
    nested = tmp_path / "nested"
    spark.sql(f"CREATE TABLE deltalog.`{nested}` (k LONG, st ARRAY<STRUCT<a: INT, b: INT>>) USING deltalog")
    counted = tmp_path / "counted"
    number = deltalog.Field("number", "long", identity=deltalog.Identity(start=1, step=1))
    DeltaTable.create(counted, schema=deltalog.Schema([deltalog.Field("id", "long"), number]))
    deltalog.write_deltalake(counted, pa.table({"id": [10, 20]}), mode="append")
    before = {kind: files(str(path)) for kind, path in paths.items()}
    code = f"""
for path in {[str(path) for path in paths.values()]!r}:
    table = DeltaTable.forPath(spark, path).alias("t")
    twice = spark.sql("SELECT * FROM VALUES (5L, 'a'), (5L, 'b') AS s(k, v)")
    def merge(source, changes):
        return table.merge(source, "id = k").whenMatchedUpdate(set=changes).execute()
    print(outcome(lambda: merge(twice, {{"s": "v"}})))
    failing = spark.range(250, 300, 1, 1).selectExpr("id AS k", "if(id = 299, 'boom', '1') AS v")
    print(outcome(lambda: merge(failing, {{"p": "CAST(v AS INT)"}})))
print(outcome(lambda: table.update("id = 1", {{"p": "5000000000L + id"}})))
print(outcome(lambda: table.update("id = 1", {{"p": "s"}})))
print(outcome(lambda: table.update("id = 1", {{"nothing": "1"}})))
print(outcome(lambda: table.update("id = 1", {{"t.s": "s", "S": "s"}})))
print(outcome(lambda: table.delete("rand() < 2")))
print(outcome(lambda: table.delete("nothing = 1")))
print(outcome(lambda: table.merge(twice, "id = k").withSchemaEvolution().whenMatchedDelete().execute()))
print(outcome(lambda: table.merge(twice, "id = k").whenMatchedUpdateAll().execute()))
feed = DeltaTable.forPath(spark, {str(feed)!r})
print(outcome(lambda: feed.update(set={{"s": "'x'"}})))
print(feed.delete("id < 5").collect()[0].num_affected_rows)
print(outcome(lambda: DeltaTable.forPath(spark, {str(typed)!r}).delete("c = 'a'")))
nested = DeltaTable.forPath(spark, {str(nested)!r}).alias("t")
lacking = spark.sql("SELECT 1L AS k, array(named_struct('a', 1)) AS st").alias("s")
print(outcome(lambda: nested.update(set={{"st": "array(named_struct('a', 1))"}})))
print(outcome(lambda: nested.merge(lacking, "t.k = s.k").whenMatchedUpdateAll().execute()))
print(outcome(lambda: nested.merge(lacking, "t.k = s.k").whenNotMatchedInsertAll().execute()))
counted = DeltaTable.forPath(spark, {str(counted)!r})
print(outcome(lambda: counted.update(set={{"number": "7"}})))
print(counted.update("id = 20", {{"id": "30"}}).collect()[0].num_affected_rows)
"""
    lines = client(server[0], tmp_path, code)
    failed = [("InvalidArgumentError", "MERGE_CARDINALITY_VIOLATION"), ("", "boom")]
    refused = [
        ("", "a value of type bigint does not fit the column p (int): 5000000001"),
        ("SchemaMismatchError", "a value of type string cannot be stored in the column p"),
        ("InvalidArgumentError", "has no column nothing; it has id, p, s"),
        ("InvalidArgumentError", "the column S is assigned twice"),
        ("InvalidArgumentError", "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
        ("AnalysisException", "UNRESOLVED_COLUMN"),
        ("UnsupportedFeatureError", "cannot add columns under Spark Connect"),
        ("InvalidArgumentError", "the source of the merge has no column id"),
        ("UnsupportedFeatureError", "delta.enableChangeDataFeed"),
        ("", "5"),
        ("UnsupportedFeatureError", "the column c of the table"),
        *[("SchemaMismatchError", "the column st.element needs the field b")] * 3,
        ("SchemaMismatchError", "the identity column 'number' cannot be changed"),
        ("", "1"),
    ]
    for line, (kind, words) in zip(lines, [*failed, *failed, *refused], strict=True):
        assert line.startswith(kind), lines
        assert words in line, lines
    numbers = pa.table(DeltaTable(counted).to_arrow()).to_pydict()
    assert sorted(zip(numbers["id"], numbers["number"], strict=True)) == [(10, 1), (30, 2)]
    for kind, path in paths.items():
        assert DeltaTable(path).version() == 0
        assert files(str(path)) == before[kind]


@pytest.mark.newest
@pytest.mark.thorough
def test_default_values_of_untrusted_tables_are_computed_without_the_server(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    """PROTOCOL, "Default Columns": the expression may come from an untrusted writer, who can read the value in the
    table afterwards.

    If the server computed the value, its parser would replace ${…} with the value of a setting, and some of its
    functions could see more than the row.
    """
    numbers = {"type": "array", "elementType": "long", "containsNull": True}
    counts = {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}
    parts = [field("a", "timestamp"), field("b", numbers)]
    defaults: dict[str, tuple[Any, str]] = {
        "numbers": (numbers, "array(1, NULL)"),
        "none": (numbers, "array()"),
        "counts": (counts, "map('a', 1)"),
        "pair": (
            {"type": "struct", "fields": parts},
            "named_struct('a', TIMESTAMP '2024-02-29 12:00:00', 'b', array(2))",
        ),
        "text": ("string", "'${spark.made.up.secret}'"),
        "sum": ("decimal(5,2)", "1 + 1.25"),
        "day": ("date", "DATE '2024-02-29'"),
        "at": ("timestamp", "TIMESTAMP '2024-02-29 12:00:00'"),
        "wall": ("timestamp_ntz", "TIMESTAMP_NTZ '2024-02-29 12:00:00'"),
        "user": ("string", "current_user()"),
    }
    columns = [field(name, kind, {"CURRENT_DEFAULT": sql}) for name, (kind, sql) in defaults.items()]
    table = CraftedTable(
        tmp_path / "t",
        [field("n", "long"), *columns],
        features=["timestampNtz"],
        writer_features=["allowColumnDefaults"],
    )
    table.commit()
    code = f"""
spark.conf.set("spark.made.up.secret", "made-up")
table = DeltaTable.forPath(spark, {str(tmp_path / "t")!r}).alias("t")
def insert(**values):
    source = spark.sql("SELECT 1L AS n").alias("s")
    return outcome(table.merge(source, "t.n = s.n").whenNotMatchedInsert(values={{"n": "s.n", **values}}).execute)
print(insert(user="'me'"))
print(insert())
print(outcome(lambda: table.update(set={{"user": "DEFAULT"}})))
"""
    done, *failed = client(server[0], tmp_path, code)
    assert done.startswith("DataFrame")
    for line in failed:
        assert line.startswith("InvalidArgumentError: "), line
        assert (
            "the default value (current_user()) of the column 'user'" in line
            or "column 'user' is missing" in line
        )
    [row] = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    noon = datetime(2024, 2, 29, 12)
    assert row == {
        "n": 1,
        "numbers": [1, None],
        "none": [],
        "counts": [("a", 1)],
        "pair": {"a": noon.replace(tzinfo=timezone.utc), "b": [2]},
        "text": "${spark.made.up.secret}",
        "sum": Decimal("2.25"),
        "day": noon.date(),
        "at": noon.replace(tzinfo=timezone.utc),
        "wall": noon,
        "user": "me",
    }


@pytest.mark.newest
@pytest.mark.thorough
def test_a_statement_conflicts_with_commits_on_its_rows(
    spark: SparkSession, server: tuple[str, Path], tmp_path: Path
) -> None:
    """Another writer commits while the source of a MERGE is evaluated. The MERGE has chosen its version of the table
    before that.
    """
    path = tmp_path / "table"
    created(spark, str(path), "vectors")
    code = f"""
def after(condition):
    def commit(batches):
        import deltalog
        for batch in batches:
            deltalog.DeltaTable({str(path)!r}).delete(condition)
            yield batch
    return spark.createDataFrame([(5, "new")], "k long, v string").coalesce(1).mapInArrow(commit, "k long, v string")
table = DeltaTable.forPath(spark, {str(path)!r})
def merge(source):
    return table.merge(source, "id = k").whenMatchedUpdate(set={{"s": "v"}}).execute().collect()[0].num_updated_rows
print(outcome(lambda: merge(after("id = 6"))))
print(outcome(lambda: merge(after("id = 5"))))
# The source reads the table, so any change of its rows is a conflict.
itself = table.toDF().where("id = 8").selectExpr("id AS k", "s AS v")
print(outcome(lambda: merge(after("id = 9").union(itself))))
"""
    lines = client(server[0], tmp_path, code)
    assert lines[0] == "1", lines
    assert all(re.match(r"(CommitConflictError|Concurrent\w+Exception):", line) for line in lines[1:3]), lines
    found = {row[0]: row[2] for row in rows(str(path))}
    assert not {5, 6, 9} & found.keys()
    assert found[8] == "s8"
    assert DeltaTable(path).history(1)[0]["operation"] == "DELETE"
    # Of all files that the statements wrote, only the file of the first statement is left.
    [written] = [file for file in files(str(path)) if "/" in file]
    assert any(file.endswith(written) for file in DeltaTable(path, version=2).file_uris())


def test_statements_take_columns_of_the_tables_own_frames(server: tuple[str, Path]) -> None:
    address, directory = server
    path = directory / "own frames"
    deltalog.write_deltalake(path, pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]}))
    client(
        address,
        directory,
        f"""
path = {str(path)!r}
table = DeltaTable.forPath(spark, path)
frame, named = table.toDF(), table.alias("t").toDF()
news = spark.sql("SELECT * FROM VALUES (2, 'x'), (9, 'y') AS v(id, v)")
table.update(frame.id == 1, {{"v": sf.concat(frame.v, frame.v)}})
merge = table.alias("t").merge(news, frame.id == news.id)
merge = merge.whenMatchedUpdate(condition=named.v == "b", set={{"v": sf.concat(frame.v, news.v)}})
merge.whenNotMatchedInsertAll().whenNotMatchedBySourceDelete(condition=named.v == "c").execute()
table.delete(named.id == 9)
""",
    )
    assert sorted(map(tuple, (row.values() for row in DeltaTable(path).to_pyarrow_table().to_pylist()))) == [
        (1, "aa"),
        (2, "bx"),
    ]


def test_columns_with_names_of_markers_are_refused(server: tuple[str, Path]) -> None:
    address, directory = server
    path = directory / "names"
    deltalog.write_deltalake(path, pa.table({"id": [1], "__deltalog_file": [2]}))
    found = client(
        address,
        directory,
        f"""
path = {str(path)!r}
print(outcome(lambda: DeltaTable.forPath(spark, path).delete("id = 1")))
""",
    )
    assert len(found) == 1
    assert found[0].startswith("UnsupportedFeatureError")
    assert "__deltalog_file" in found[0]
