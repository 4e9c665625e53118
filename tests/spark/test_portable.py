"""The portable source gives the rows of the native scan:

both give those that the golden tables expect. Run as Spark's workers run it, without a session.
"""

import pickle
from typing import Any

import pyarrow as pa
import pytest

import deltalog
from deltalog.spark.portable import DeltalogDataSource
from tests.conftest import missing
from tests.golden import canonical
from tests.golden.expected import ROOT, Golden, load

TABLES = [golden for golden in load() if golden.outcome == "read"]


def read(golden: Golden, **options: Any) -> pa.Table:
    """Every partition in a reader of its own, which went from one process to the other."""
    source = DeltalogDataSource(
        {
            "path": str(golden.table),
            "numPartitions": "3",
            **{name: str(value) for name, value in options.items()},
        }
    )
    schema = source.schema()
    reader = source.reader(schema)
    batches = [
        batch
        for partition in reader.partitions()
        for batch in pickle.loads(pickle.dumps(reader)).read(partition)  # noqa: S301
    ]
    from deltalog.spark.portable import _arrow_schema

    return pa.Table.from_batches(batches, _arrow_schema(schema))


def test_every_table_is_read_as_expected() -> None:
    if not TABLES:
        missing(f"no golden tables at {ROOT}; DELTALOG_GOLDEN names another folder")
    failures = []
    for golden in TABLES:
        if "variant" in str(golden.expected["schema"]):
            continue  # Arrow as Spark hands it to Python does not mark variants
        lines = canonical.rows(read(golden))
        if (len(lines), canonical.sha256(lines)) != (
            golden.expected["num_rows"],
            golden.expected["rows_sha256"],
        ):
            failures.append(golden.name)
    assert not failures


@pytest.mark.parametrize(
    "golden", [golden for golden in TABLES if "cdf" in golden.expected], ids=lambda golden: golden.name
)
def test_change_data_feeds_are_those_of_python(golden: Golden) -> None:
    feed = golden.expected["cdf"]
    start, end = feed["start_version"], feed["end_version"]
    found = read(golden, readChangeFeed="true", startingVersion=start, endingVersion=end)
    wanted = pa.table(deltalog.DeltaTable(golden.table).load_cdf(start, end))
    assert found.column_names == wanted.column_names
    assert canonical.rows(found) == canonical.rows(wanted)


TRACKED = [golden for golden in TABLES if "rowTracking" in golden.features and golden.expected["num_rows"]]


@pytest.mark.parametrize("golden", TRACKED, ids=lambda golden: golden.name)
def test_row_ids_are_those_of_python(golden: Golden) -> None:
    """PROTOCOL.md, "Row Tracking"."""
    found, wanted = (
        read(golden, rowIds="true"),
        pa.table(deltalog.DeltaTable(golden.table).to_arrow(row_ids=True)),
    )
    assert found.column_names == wanted.column_names
    assert canonical.rows(found) == canonical.rows(wanted)


def test_row_ids_of_a_table_without() -> None:
    golden = next(golden for golden in TABLES if "rowTracking" not in golden.features)
    with pytest.raises(deltalog.InvalidArgumentError, match="row tracking is not enabled"):
        read(golden, rowIds="true")
