"""No output of a Spark session that people or other processes can see contains a secret.
`tests/stores/test_secrets.py` checks the same for Python without Spark.

A session accesses one store by settings of Hadoop and by options, and another store by options alone. Everything that
it outputs is recorded: plans, logs of Python and of the JVM, the event log, errors, the content of the catalog, and the
environment of its workers. Messages that the program itself sends to the JVM are left out, because PySpark and Spark
log them at the level DEBUG.
"""

from __future__ import annotations

import base64
import json
import logging
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from deltalog.spark.secrecy import _hide_values
from tests.spark.conftest import hadoop_aws
from tests.spark.processes import run_python
from tests.stores.s3_server import S3Server

pytestmark = pytest.mark.newest

KEY = {"access_key": "canary0key0id", "secret_key": "canary0secret+key/0"}
OTHER = {"access_key": "another0key0id", "secret_key": "another0secret+key/0"}

PROGRAM = r"""
import json, logging, os, sys, traceback, warnings
import pyarrow as pa
from pyspark.sql import SparkSession
import deltalog, deltalog.spark
from deltalog.tables import DeltaTable

settings, same, others = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = deltalog.spark.enable(builder.getOrCreate())
level = spark._jvm.org.apache.logging.log4j.Level.DEBUG
spark._jvm.org.apache.logging.log4j.core.config.Configurator.setLevel("io.deltalog", level)

class Answers(logging.Filter):
    def filter(self, record):
        return not record.getMessage().startswith("Command to send")

handler = logging.StreamHandler(sys.stdout)
handler.addFilter(Answers())
logging.basicConfig(level=1, handlers=[handler], format="%(name)s %(message)s")
warnings.simplefilter("always")

# Writes a single string. print() writes each argument separately, so logs of other threads could come in between.
def attempt(name, work):
    try:
        print(f"did {name} {work()!r}")
    except Exception as error:
        print(f"failed {name} {error!r} {vars(error)}")
        traceback.print_exc(file=sys.stdout)

data = spark.range(3, numPartitions=1).selectExpr("id", "'x' AS s")

def options_of(io, options):
    for name, value in options.items():
        io = io.option(name, value)
    return io.format("deltalog")

def use(name, uri, options):
    def read():
        return options_of(spark.read, options).load(uri)
    def table():
        return DeltaTable.forPath(spark, uri, options)
    def write():
        return options_of(data.write, options).mode("append")
    def explained(what):
        return [spark.sql(f"EXPLAIN EXTENDED {statement}").collect() for statement in what]
    attempt(f"{name} save", lambda: write().save(uri))
    attempt(f"{name} create", lambda: write().option("path", f"{uri}-{name}").saveAsTable("named"))
    attempt(f"{name} explain", lambda: (read().where("id = 1").explain(True), read().explain("formatted")))
    attempt(f"{name} read", lambda: (read().where("id > 1").collect(), read(), read().rdd, table()))
    attempt(f"{name} merge", lambda: table().alias("t").merge(data.alias("s"), "t.id = s.id")
            .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().collect())
    def streamed():
        frame = options_of(spark.readStream, options).load(uri)
        frame.explain(True)
        writer = options_of(frame.writeStream, options).trigger(availableNow=True)
        place = settings["spark.eventLog.dir"] + "/checkpoints/" + name
        query = writer.option("checkpointLocation", place).start(f"{uri}-stream-{name}")
        query.awaitTermination()
        query.explain(True)
        return query.lastProgress, query.recentProgress
    attempt(f"{name} stream", streamed)
    path = f"deltalog.`{uri}`"
    attempt(f"{name} statements", lambda: explained([
        f"SELECT * FROM {path}", f"INSERT INTO {path} VALUES (1, 'a')", f"DELETE FROM {path} WHERE id = 1",
        f"UPDATE {path} SET s = 'y'"]))
    clause = ", ".join(f"'{option}' '{value}'" for option, value in options.items())
    secret = f"CREATE TABLE secret USING deltalog OPTIONS ({clause}) LOCATION '{uri}'"
    attempt(f"{name} table", lambda: spark.sql(secret))
    attempt(f"{name} catalog", lambda: [spark.sql(f"{command} named").collect() for command in (
        "DESCRIBE EXTENDED", "SHOW CREATE TABLE", "DESCRIBE DETAIL", "SHOW TBLPROPERTIES")])
    spark.sql("DROP TABLE IF EXISTS named")

place = {name: value for name, value in same.items() if not name.endswith(("_key", "_id"))}
uri = "s3a://tables/t"
spark.sql(f"CREATE TABLE plain (id LONG, s STRING) USING deltalog OPTIONS (aws_region 'us-east-1') LOCATION '{uri}'")
use("same", uri, same)
use("hadoop", uri, {name.removeprefix("spark.hadoop."): value for name, value in settings.items() if ".key" in name})
use("wrong", uri, {**same, "aws_secret_access_key": same["aws_secret_access_key"] + "x"})
attempt("nowhere", lambda: options_of(data.write, same).save("s3a://nowhere/t"))
for secret in (f"s3a://{same['aws_access_key_id']}:{same['aws_secret_access_key'].replace('/', '%2F')}@tables/t",):
    attempt("location", lambda: spark.read.format("deltalog").load(secret))
deltalog.write_deltalake(uri, pa.table({"id": [7], "s": ["a"]}), storage_options=others)
attempt("other read", lambda: options_of(spark.read, others).load(uri).collect())
attempt("other explain", lambda: options_of(spark.read, others).load(uri).explain(True))
attempt("other write", lambda: options_of(data.write, others).mode("append").save(uri))

def environment(batches):
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"e": [str(dict(os.environ))]})

attempt("workers", lambda: spark.range(1, numPartitions=1).mapInArrow(environment, "e string").collect())
print("environment", dict(os.environ))
spark.stop()
"""


def test_no_output_contains_a_secret(tmp_path: Path) -> None:
    with S3Server() as s3, S3Server() as other:
        for server, keys in ((s3, KEY), (other, OTHER)):
            server.set(**keys)
            server.create_bucket("tables")
        same = s3.options()
        settings = {
            "spark.jars": ",".join(map(str, hadoop_aws())),
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": tmp_path.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.hadoop.fs.s3a.access.key": same["aws_access_key_id"],
            "spark.hadoop.fs.s3a.secret.key": same["aws_secret_access_key"],
            "spark.hadoop.fs.s3a.endpoint": same["aws_endpoint_url"],
            "spark.hadoop.fs.s3a.endpoint.region": same["aws_region"],
            "spark.hadoop.fs.s3a.attempts.maximum": "1",
            "spark.hadoop.fs.s3a.retry.limit": "1",
        }
        given = json.dumps([settings, same, other.options()])
        ran = run_python(f"import sys; sys.argv.append({given!r})\n{PROGRAM}", PYSPARK_PYTHON=sys.executable)
        stored = "".join(
            server.get("tables", key).decode("latin-1")
            for server in (s3, other)
            for key in server.keys("tables")
        )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    # The program has reached all its steps, both those that succeed and those that fail, and has written logs.
    for done in (
        *(f"same {what}" for what in ("save", "read", "merge", "stream", "statements", "catalog")),
        "hadoop merge",
    ):
        assert f"did {done}" in said, done
    for done in (
        "same table",
        "hadoop table",
        "wrong save",
        "wrong read",
        "wrong stream",
        "nowhere",
        "location",
        "other write",
    ):
        assert f"failed {done}" in said, done
    assert "did other read [Row(id=7, s='a')]" in said
    assert "did workers" in said
    for words in (
        "SignatureDoesNotMatch",
        "options of a table that may be secrets",
        "NoSuchBucket",
        '"fs.s3a.secret.key":"…',
    ):
        assert words in said, words
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any("SQLExecutionStart" in file.read_text(errors="replace") for file in files)
    seen = said + stored + "".join(file.read_text(errors="replace") for file in files)
    for secret in (*KEY.values(), *OTHER.values()):
        for form in (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()):
            found = seen.find(form)
            assert found < 0, seen[max(0, found - 300) : found + 60]


@pytest.mark.newest
@pytest.mark.parametrize(
    "value",
    [
        "-----BEGIN PRIVATE KEY-----\ncanary\n-----END\n",
        'a"canary',
        "a\\canary",
        json.dumps({"key": "a\ncanary"}),
    ],
)
def test_values_with_escapes_are_hidden_completely(value: str) -> None:
    """Values with escaped characters are hidden completely. Settings are passed as JSON, which may itself be a string
    in JSON.
    """
    text = json.dumps({"fs.gs.auth.service.account.private.key": value, "other": "kept"})
    for _ in range(3):
        record = logging.LogRecord("py4j", logging.DEBUG, __file__, 1, text, (), None)
        assert _hide_values(record)
        shown = record.getMessage()
        assert "canary" not in shown
        assert "kept" in shown
        text = json.dumps([text])
