"""Functions that deltalog has under the same names as `deltalake` return the same results."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import deltalake.exceptions
import deltalake.table
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import deltalog
from deltalog.filters import filter_argument

DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 250_000, datetime.timezone.utc)
DATA = pa.table(
    {
        "p": pa.array([1, 1, 2, None, 3], pa.int32()),
        "q": ["a", "it's \\ a", "b", "a", None],
        "n": pa.array([1, 2, None, 4, 5], pa.int64()),
        "x": [0.5, 1e300, -1.0, None, 2.0],
        "s": ["x", "y'", "\\z", None, "x"],
        "d": pa.array([DAY, None, DAY + datetime.timedelta(1), DAY, DAY], pa.date32()),
        "t": pa.array([NOON, NOON, None, NOON + datetime.timedelta(1), NOON], pa.timestamp("us", "UTC")),
        "c": pa.array([Decimal("1.50"), None, Decimal("-2.25"), Decimal(0), Decimal(9)], pa.decimal128(9, 2)),
        "b": [b"\x00\xff", None, b"", b"a", b"a"],
        "f": [True, False, None, True, False],
    }
)

FILTERS: list[Any] = [
    [("n", "=", 1)],
    [("n", "==", 2)],
    [("n", "!=", 1)],
    [("n", ">", 1), ("n", "<=", 4)],
    [[("n", "=", 1)], [("n", "=", 5), ("f", "=", False)]],
    [("n", "in", [1, 5])],
    [("n", "not in", [1, 5])],
    [("n", "in", [])],
    [("n", "not in", [])],
    [("s", "=", "y'")],
    [("s", "=", "\\z")],
    [("q", "=", "it's \\ a")],
    [("s", "not in", ["x"])],
    [("x", ">=", 1e300)],
    [("x", "<", -0.5)],
    [("d", ">", DAY)],
    [("t", "=", NOON)],
    [("t", ">", NOON)],
    [("c", "<", Decimal("1.5"))],
    [("b", "=", b"\x00\xff")],
    [("f", "=", True)],
    [("p", "=", 1)],
    [("p", "in", (2, 3)), ("f", "!=", True)],
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names")
    deltalake.write_deltalake(path, DATA, partition_by=["p", "q"])
    return path


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(row) for row in table.select(DATA.column_names).to_pylist())


@pytest.mark.parametrize("filters", FILTERS, ids=repr)
def test_filters_find_the_rows_that_deltalake_finds(table: Path, filters: Any) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)
    expected = rows(theirs.to_pyarrow_table(filters=filters))
    assert rows(ours.to_pyarrow_table(filters=filters)) == expected
    assert rows(pa.table(ours.scan(predicate=filters))) == expected
    assert ours.count(filters) == len(expected)
    # A pandas frame may contain NaN instead of NULL.
    assert len(ours.to_pandas(filters=filters, columns=["n"])) == len(expected)


def test_columns_partitions_and_filters_together(table: Path) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)
    chosen: dict[str, Any] = {
        "partitions": [("p", "=", "1")],
        "columns": ["s", "n"],
        "filters": [("n", "<", 9)],
    }
    with pytest.warns(DeprecationWarning, match="partitions"):
        expected = theirs.to_pyarrow_table(**chosen)
    found = ours.to_pyarrow_table(**chosen)
    assert found.column_names == expected.column_names == ["s", "n"]
    assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)
    assert ours.to_pandas(columns=["n"], filters="n > 1 AND n < 5")["n"].tolist() in ([2, 4], [4, 2])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (("p", ">=", "2"), ("p", ">=", 2)),
        (("p", "in", ["1", "3"]), ("p", "in", [1, 3])),
        (("x", "<", "1e0"), ("x", "<", 1.0)),
        (("c", "=", "1.50"), ("c", "=", Decimal("1.5"))),
        (("d", "=", "2024-02-29"), ("d", "=", DAY)),
        (("t", "=", "2024-02-29T12:30:15.250Z"), ("t", "=", NOON)),
        (("f", "=", "true"), ("f", "=", True)),
        (("P", ">=", "2"), ("p", ">=", 2)),
        (("P", "in", ["1", "3"]), ("p", "in", [1, 3])),
    ],
)
def test_text_is_a_value_of_the_column(table: Path, text: Any, value: Any) -> None:
    ours = deltalog.DeltaTable(table)
    expected = ours.to_pyarrow_table(filters=[value])
    assert expected.num_rows > 0
    assert ours.to_pyarrow_table(filters=[text]).equals(expected)


@pytest.mark.parametrize(
    ("numpys", "value"),
    [
        (("x", ">", np.float64(0.5)), ("x", ">", 0.5)),
        (("x", ">", np.float32(0.5)), ("x", ">", 0.5)),
        (("n", "<", np.int64(4)), ("n", "<", 4)),
        (("p", "in", np.array([1, 3])), ("p", "in", [1, 3])),
        (("f", "=", np.bool_(True)), ("f", "=", True)),
        (("s", "=", np.str_("x")), ("s", "=", "x")),
    ],
)
def test_scalars_of_numpy_are_values(table: Path, numpys: Any, value: Any) -> None:
    ours = deltalog.DeltaTable(table)
    expected = ours.to_pyarrow_table(filters=[value])
    assert expected.num_rows > 0
    assert ours.to_pyarrow_table(filters=[numpys]).equals(expected)


def test_partitions(table: Path) -> None:
    theirs, ours = deltalake.DeltaTable(table), deltalog.DeltaTable(table)

    def sets(partitions: list[Any]) -> set[frozenset[Any]]:
        return {frozenset(partition.items()) for partition in partitions}

    assert sets(ours.partitions()) == sets(theirs.partitions())
    assert ours.partitions() == [
        {"p": None, "q": "a"},
        {"p": "1", "q": "a"},
        {"p": "1", "q": "it's \\ a"},
        {"p": "2", "q": "b"},
        {"p": "3", "q": None},
    ]
    for chosen in ([("p", "=", 1)], [("q", "in", ["a", "b"])]):
        assert sets(ours.partitions(chosen)) == sets(theirs.partitions(file_pruning_predicate=chosen))
    assert ours.partitions("n = 5") == [{"p": "3", "q": None}]


def test_a_table_without_partition_columns_has_no_partitions(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, DATA)
    assert deltalog.DeltaTable(tmp_path).partitions() == deltalake.DeltaTable(tmp_path).partitions() == []


def test_transaction_version(tmp_path: Path) -> None:
    progress = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("app", 5)])
    deltalake.write_deltalake(tmp_path, DATA, commit_properties=progress)
    theirs, ours = deltalake.DeltaTable(tmp_path), deltalog.DeltaTable(tmp_path)
    for app in ("app", "another"):
        assert ours.transaction_version(app) == theirs.transaction_version(app)
    assert ours.transaction_version("app") == 5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"filesystem": object()}, deltalog.UnsupportedFeatureError, "a pyarrow filesystem"),
        ({"filters": pa.compute.field("n") > 1}, deltalog.UnsupportedFeatureError, "pyarrow Expression"),
        ({"filters": [("n", "~", 1)]}, deltalog.InvalidArgumentError, "one of"),
        ({"filters": [("n", "=", None)]}, deltalog.InvalidArgumentError, "IS NULL"),
        ({"filters": [("x", "=", float("nan"))]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("n", "in", "15")]}, deltalog.InvalidArgumentError, "list of values"),
        ({"filters": [("n", "=", "one")]}, deltalog.InvalidArgumentError, "not a value of type long"),
        ({"filters": [("c", "=", "one")]}, deltalog.InvalidArgumentError, "not a value of type decimal"),
        ({"filters": [("x", "=", "NaN")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("x", "<", "-Infinity")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("c", "=", "NaN")]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("n", "=", np.timedelta64(1, "s"))]}, deltalog.InvalidArgumentError, "no SQL form"),
        ({"filters": [("f", "=", "maybe")]}, deltalog.InvalidArgumentError, "cannot be compared"),
        ({"filters": [("n", 1)]}, deltalog.InvalidArgumentError, "a tuple of column"),
        ({"filters": [("missing", "=", 1)]}, deltalog.InvalidArgumentError, "missing"),
        ({"columns": "n"}, deltalog.InvalidArgumentError, "list of names"),
    ],
)
def test_invalid_arguments(table: Path, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        deltalog.DeltaTable(table).to_pyarrow_table(**arguments)


def test_fields_of_the_schema(tmp_path: Path) -> None:
    nested = deltalog.StructType([deltalog.Field("x", "double"), deltalog.Field("y", "date")])
    fields = [
        deltalog.Field("id", "long", nullable=False, metadata={"comment": "the \u201ckey\u201d"}),
        deltalog.Field("price", "decimal(9,2)"),
        deltalog.Field("tags", deltalog.ArrayType("string", contains_null=False)),
        deltalog.Field("more", deltalog.MapType("string", nested, value_contains_null=False)),
    ]
    deltalog.DeltaTable.create(tmp_path, deltalog.Schema(fields))
    theirs = deltalake.DeltaTable(tmp_path).schema().fields
    ours = deltalog.DeltaTable(tmp_path).schema().fields
    assert ours == fields
    assert [json.loads(field.to_json()) for field in ours] == [
        json.loads(field.to_json()) for field in theirs
    ]
    assert [repr(field.type) for field in ours] == [repr(field.type) for field in theirs]
    assert [(field.name, field.nullable) for field in ours] == [
        (field.name, field.nullable) for field in theirs
    ]


def test_a_filter_with_many_texts_parses_the_schema_once(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = deltalog.DeltaTable(table).schema()
    parsed: list[list[deltalog.Field]] = []

    def fields(_: deltalog.Schema) -> list[deltalog.Field]:
        parsed.append(found)
        return found

    found = schema.fields
    monkeypatch.setattr(deltalog.Schema, "fields", property(fields))
    assert filter_argument([("p", "in", [str(number) for number in range(100)])], schema, "predicate")
    assert len(parsed) == 1


@pytest.mark.parametrize("flatten", [False, True])
def test_add_actions(table: Path, flatten: bool) -> None:
    theirs = pa.table(deltalake.DeltaTable(table).get_add_actions(flatten=flatten))
    ours = deltalog.DeltaTable(table).get_add_actions(flatten=flatten)
    if flatten:
        for column in ("size_bytes", "num_records", "partition.p", "min.n", "max.n", "null_count.n"):
            assert sorted(map(repr, ours[column].to_pylist())) == sorted(
                map(repr, theirs[column].to_pylist())
            )
    else:
        assert set(ours.column_names) == {
            "path",
            "size_bytes",
            "modification_time",
            "num_records",
            "null_count",
            "min",
            "max",
            "partition",
        }
        assert set(ours.column_names) <= set(theirs.column_names)
        assert [row["p"] for row in ours["partition"].to_pylist()].count(1) == 2


@pytest.mark.parametrize(
    "condition",
    [
        None,
        pa.compute.field("p") == 1,
        pa.compute.field("q") == "it's \\ a",
        pa.compute.field("q").is_null(),
        pa.compute.field("n") > 3,
        ~(pa.compute.field("x") <= 1.0),
        pa.compute.field("d") == DAY,
        pa.compute.field("t") >= NOON,
        pa.compute.field("s") < "y",
        pa.compute.field("c") < Decimal(1),
        pa.compute.field("n").is_null(),
    ],
    ids=str,
)
def test_a_dataset_of_pyarrow(table: Path, condition: Any) -> None:
    """deltalog's pyarrow dataset has the same rows as the dataset of `deltalake`, and skips files by their
    statistics.
    """
    theirs = deltalake.DeltaTable(table).to_pyarrow_dataset().to_table(filter=condition)
    dataset = deltalog.DeltaTable(table).to_pyarrow_dataset()
    assert rows(dataset.to_table(filter=condition)) == rows(theirs)
    assert dataset.schema == pa.schema(deltalog.DeltaTable(table).schema())


def test_a_dataset_skips_files(table: Path) -> None:
    ours = deltalog.DeltaTable(table)
    dataset = ours.to_pyarrow_dataset()
    assert len(list(dataset.get_fragments())) == 5
    for condition in (
        pa.compute.field("p") == 2,
        pa.compute.field("n") == 4,
        pa.compute.field("p").is_null(),
    ):
        assert len(list(dataset.get_fragments(filter=condition))) < 5
    assert len(list(ours.to_pyarrow_dataset([("p", "=", "1")]).get_fragments())) == 2
    assert ours.to_pyarrow_dataset(file_pruning_predicate="p = 1").count_rows() == 2


def test_a_dataset_of_a_table_that_pyarrow_cannot_read(tmp_path: Path) -> None:
    """If pyarrow cannot read the files of a table, deltalog reads the rows of the dataset, unless the caller has
    passed options for pyarrow.
    """
    properties = {"delta.enableDeletionVectors": "true"}
    deltalog.write_deltalake(tmp_path / "vectors", DATA, configuration=properties)
    vectors = deltalog.DeltaTable(tmp_path / "vectors")
    assert vectors.to_pyarrow_dataset().count_rows() == 5
    vectors.delete("n = 1")
    field = pa.compute.field("n")
    dataset = vectors.to_pyarrow_dataset()
    assert sorted(dataset.to_table(["n"], field.is_valid())["n"].to_pylist()) == [2, 4, 5]
    some = vectors.to_pyarrow_dataset("n > 2", file_pruning_predicate="n < 5")
    assert some.to_table()["n"].to_pylist() == [4]
    with pytest.raises(deltalog.UnsupportedFeatureError, match="deletion vectors"):
        vectors.to_pyarrow_dataset(schema=pa.schema(vectors.schema()))
    mapped = {"delta.columnMapping.mode": "name"}
    deltalog.write_deltalake(tmp_path / "mapped", DATA, configuration=mapped)
    table = deltalog.DeltaTable(tmp_path / "mapped")
    assert table.to_pyarrow_dataset().filter(field == 4).count_rows() == 1
    with pytest.raises(deltalog.UnsupportedFeatureError, match="map columns by name"):
        table.to_pyarrow_dataset(parquet_read_options=pa.dataset.ParquetReadOptions())
    clone = vectors.clone(tmp_path / "clone", shallow=True)
    copy = deltalog.DeltaTable(tmp_path / "clone", allowed_roots=clone.allowed_roots)
    assert copy.to_pyarrow_dataset().count_rows() == 4


def test_metrics_have_both_spellings(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path, DATA)
    theirs = deltalake.DeltaTable(tmp_path).delete("n = 1")
    deltalog.write_deltalake(tmp_path / "ours", DATA)
    ours = deltalog.DeltaTable(tmp_path / "ours").delete("n = 1")
    assert ours["num_deleted_rows"] == ours["numDeletedRows"] == theirs["num_deleted_rows"] == 1
    assert ours.get("num_deleted_rows") == 1
    assert "num_deleted_rows" in ours
    assert "num_shown_rows" not in ours
    assert ours.get("num_shown_rows", 7) == 7
    with pytest.raises(KeyError):
        ours["num_shown_rows"]


def test_a_merge_may_add_columns(tmp_path: Path) -> None:
    more = pa.table({"n": [1, 9], "extra": ["x", "y"]})
    found = []
    for library in (deltalake, deltalog):
        path = tmp_path / library.__name__
        library.write_deltalake(path, DATA.select(["n", "s"]))
        merge = library.DeltaTable(path).merge(
            more, "target.n = source.n", "source", "target", merge_schema=True, streamed_exec=False
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
        rows = deltalog.DeltaTable(path).to_pyarrow_table(columns=["n", "s", "extra"])
        found.append(sorted(rows.to_pylist(), key=repr))
    assert found[0] == found[1]
    assert {"n": 9, "s": None, "extra": "y"} in found[0]


def test_exceptions() -> None:
    """Each name of `deltalake.exceptions` exists, and an `except` clause with it catches our errors."""
    for name in dir(deltalake.exceptions):
        if not name.startswith("_"):
            assert issubclass(getattr(deltalog.exceptions, name), deltalog.DeltaError)
    assert issubclass(deltalog.CommitConflictError, deltalog.exceptions.CommitFailedError)
    assert issubclass(deltalog.NotATableError, deltalog.exceptions.TableNotFoundError)
    for kind in (deltalog.UnsupportedFeatureError, deltalog.CorruptLogError):
        assert issubclass(kind, deltalog.exceptions.DeltaProtocolError)


KINDS = {
    "DeltaTable": (deltalake.DeltaTable, deltalog.DeltaTable),
    "alter": (deltalake.table.TableAlterer, deltalog.TableAlterer),
    "optimize": (deltalake.table.TableOptimizer, deltalog.TableOptimizer),
    "merge": (deltalake.table.TableMerger, deltalog.TableMerger),
    "": (deltalake, deltalog),
    **{
        name: (getattr(deltalake, name), getattr(deltalog, name))
        for name in sorted(set(deltalake.__all__) & set(deltalog.__all__))
        if isinstance(getattr(deltalake, name), type) and name != "DeltaTable"
    },
}
# These parameters have different names.
RENAMED = {
    "partition_filters": "predicate",
    "data_type": "schema",
    "schema_json": "text",
    "column_name": "column",
}

# These are internal names in modules of `deltalake`.
INTERNAL = {"BaseDeltaStorageHandler", "deprecate_positional_commit_args", "encode_partition_value"}


@pytest.fixture(scope="module")
def differences(root: Path) -> str:
    return (root / "docs" / "moving" / "deltalake.md").read_text()


def shared_calls() -> Iterator[tuple[str, Any, Any]]:
    for kind, (theirs, ours) in KINDS.items():
        for name in vars(theirs) if kind else deltalake.__all__:
            member = getattr(theirs, name)
            is_public = not name.startswith("_") and callable(member) and not isinstance(member, type)
            if is_public and hasattr(ours, name):
                yield f"{kind}.{name}", member, getattr(ours, name)
        # Users do not create `Metadata` objects themselves.
        if kind in deltalog.__all__ and kind != "Metadata":
            yield kind, theirs, ours


def test_every_name_exists_or_is_in_the_table_of_differences(differences: str) -> None:
    for kind, (theirs, ours) in KINDS.items():
        for name in vars(theirs) if kind else deltalake.__all__:
            is_there = name.startswith("_") or hasattr(ours, name) or name in attributes(ours)
            assert is_there or f"`{name}" in differences, f"{kind}.{name} is not in docs/moving/deltalake.md"


def attributes(kind: Any) -> list[str]:
    """Returns attributes that only objects of a class have."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return dir(deltalog.Field("a", "long")) if kind is deltalog.Field else []


def test_every_name_of_a_module_exists_or_is_in_the_table_of_differences(differences: str) -> None:
    for module in pkgutil.walk_packages(deltalake.__path__, "deltalake."):
        if "._" in module.name:
            continue
        for alias, member in vars(importlib.import_module(module.name)).items():
            name = getattr(member, "__name__", alias)
            place = str(getattr(member, "__module__", ""))
            is_own = place.startswith("deltalake") and "._" not in place
            if name.startswith("_") or not is_own or name in INTERNAL:
                continue
            is_there = hasattr(deltalog, name) or hasattr(deltalog.exceptions, name)
            assert is_there or name in differences, f"{module.name}.{name} is not in docs/moving/deltalake.md"


def test_every_parameter_exists_or_is_in_the_table_of_differences(differences: str) -> None:
    for call, theirs, ours in shared_calls():
        known = {*inspect.signature(ours).parameters, "args"}
        for parameter in set(inspect.signature(theirs).parameters) - known - {"data_type", "schema_json"}:
            assert f"`{parameter}`" in differences, f"{call}({parameter}) is not in docs/moving/deltalake.md"


def test_no_argument_by_position_means_another_parameter() -> None:
    def by_position(call: Any) -> list[str]:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [one.name for one in inspect.signature(call).parameters.values() if one.kind in kinds]

    for call, theirs, ours in shared_calls():
        for expected, name in zip(by_position(theirs), by_position(ours), strict=False):
            assert name in (expected, RENAMED.get(expected)), f"{call}({expected})"


def test_metrics_exist_or_are_in_the_table_of_differences(tmp_path: Path, differences: str) -> None:
    def metrics(library: Any) -> dict[str, Any]:
        path = tmp_path / library.__name__
        library.write_deltalake(path, DATA.select(["n", "s"]))
        table = library.DeltaTable(path)
        found = {"update": table.update({"s": "'z'"}, predicate="n = 1")}
        merge = table.merge(DATA.select(["n", "s"]), "target.n = source.n", "source", "target")
        found["merge"] = merge.when_matched_update_all().execute()
        found["delete"] = table.delete("n = 2")
        found["compact"], found["z_order"] = table.optimize.compact(), table.optimize.z_order(["n"])
        found["repair"], found["restore"] = table.repair(), table.restore(0)
        return found

    theirs, ours = metrics(deltalake), metrics(deltalog)
    for call, expected in theirs.items():
        for name in expected:
            assert name in ours[call] or f"`{name}`" in differences, f"{call} has no {name}"
