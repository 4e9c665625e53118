"""The files of a table for pyarrow: the list that `deltalake` calls add actions, and a dataset whose files pyarrow
itself reads.
"""

import functools
import operator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deltalog.checked import checks_arguments
from deltalog.errors import UnsupportedFeatureError, hinted, wrong_argument
from deltalog.filters import Filter
from deltalog.table.handle import TableHandle

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

__all__ = ["TableDataset"]

_ELSE = "read the rows by to_arrow(), which supports all of these features"


@checks_arguments
class TableDataset(TableHandle):
    """The methods of `DeltaTable` that describe its files for pyarrow."""

    def get_add_actions(self, flatten: bool = False) -> "pyarrow.Table":
        """Returns the live data files as `deltalake` does: a pyarrow table, with one row per file.

        The columns are `path`, `size_bytes`, `modification_time`, `num_records`, and the structs `null_count`, `min`,
        `max` and `partition`. `files()` has more columns, and returns a stream. Needs pyarrow.

        Args:
            flatten: whether the fields of the structs become columns of their own, such as `min.price`.
        """
        import pyarrow

        files = _files(self, None)
        stats = files["stats"].combine_chunks()
        columns: dict[str, Any] = {
            "path": files["path"],
            "size_bytes": files["size"],
            "modification_time": files["modification_time"],
            "num_records": files["num_records"],
        }
        parts = {"null_count": "nullCount", "min": "minValues", "max": "maxValues"}
        for name, source in parts.items():
            if source in [field.name for field in stats.type]:
                columns[name] = pyarrow.compute.struct_field(stats, source)
        if self._snapshot.partition_columns:
            columns["partition"] = files["partition_values"]
        table = pyarrow.table(columns)
        if not flatten:
            return table
        while any(pyarrow.types.is_struct(field.type) for field in table.schema):
            table = table.flatten()
        return table

    def to_pyarrow_dataset(
        self,
        partitions: Filter | None = None,
        filesystem: object = None,
        parquet_read_options: object = None,
        schema: object = None,
        as_large_types: bool = False,
        file_pruning_predicate: Filter | None = None,
    ) -> "pyarrow.dataset.Dataset":
        """Returns the table as a pyarrow dataset. Needs pyarrow.

        If pyarrow can read the files of the table by itself, they are the fragments of the dataset. Each fragment has
        an expression that holds for its rows: the values of partition columns, and bounds of integers, dates and
        strings. If pyarrow cannot read them, because of deletion vectors, column mapping, or files outside the table or
        in a store, deltalog reads the rows. The dataset is then the one that `deltalog.pyarrow.dataset` returns, and
        has no fragments.

        Args:
            partitions: selects files, by SQL or tuples as in `files()`. A fragment has all rows of a file that may
                contain a matching row; a dataset without fragments has only matching rows.
            filesystem: a pyarrow filesystem whose root is the table's directory. Not needed for files on the local
                disk.
            parquet_read_options: options for `pyarrow.dataset.ParquetFileFormat`.
            schema: a `pyarrow.Schema` for the rows; None for the table's schema.
            as_large_types: True is refused; pass a `schema` with large types instead.
            file_pruning_predicate: another filter like `partitions`. Files must match both.

        Raises:
            UnsupportedFeatureError: a `filesystem`, `parquet_read_options` or `schema` was passed, and pyarrow cannot
                read the files by itself.
        """
        if as_large_types:
            refused = UnsupportedFeatureError("as_large_types cannot be True")
            raise hinted(refused, "pass a schema with the types large_string and large_binary")
        conditions = [
            self._filter(partitions, "partitions"),
            self._filter(file_pruning_predicate, "file_pruning_predicate"),
        ]
        predicate = " AND ".join(f"({text})" for text in conditions if text is not None) or None
        try:
            return self._dataset_of_files(predicate, filesystem, parquet_read_options, schema)
        except UnsupportedFeatureError:
            if any(given is not None for given in (filesystem, parquet_read_options, schema)):
                raise
        from deltalog.conditions import Rows
        from deltalog.pyarrow import of_rows

        return of_rows(Rows(self._rows, self._opened.is_pinned), predicate)

    def _dataset_of_files(
        self, predicate: str | None, filesystem: object, parquet_read_options: object, schema: object
    ) -> "pyarrow.dataset.Dataset":
        """Returns the files as a dataset that pyarrow reads. Refuses tables whose rows it would read incorrectly."""
        import pyarrow
        import pyarrow.dataset
        import pyarrow.fs

        if schema is not None and not isinstance(schema, pyarrow.Schema):
            raise wrong_argument("schema", schema, "a pyarrow.Schema, or None")
        if filesystem is None:
            filesystem = _local(self._snapshot.uri)
        elif not isinstance(filesystem, pyarrow.fs.FileSystem):
            raise wrong_argument("filesystem", filesystem, "a pyarrow.fs.FileSystem, or None")
        try:
            format_ = pyarrow.dataset.ParquetFileFormat(read_options=parquet_read_options)
        except TypeError as error:
            expected = "a pyarrow.dataset.ParquetReadOptions, or None"
            raise wrong_argument("parquet_read_options", parquet_read_options, expected) from error
        self._ensure_plain()
        files = _files(self, predicate)
        if files["deletion_vector"].null_count < len(files):
            refused = UnsupportedFeatureError(
                "to_pyarrow_dataset cannot leave out rows that deletion vectors delete"
            )
            raise hinted(refused, _ELSE)
        fragments = [
            format_.make_fragment(
                _inside(row["path"]), filesystem=filesystem, partition_expression=_known(row)
            )
            for row in files.to_pylist()
        ]
        columns = pyarrow.schema(self.schema()) if schema is None else schema
        return pyarrow.dataset.FileSystemDataset(fragments, columns, format_, filesystem)

    def _ensure_plain(self) -> None:
        """Refuses tables whose rows pyarrow would read incorrectly."""
        mode = self._snapshot.column_mapping_mode
        if mode != "none":
            refused = UnsupportedFeatureError(f"to_pyarrow_dataset cannot map columns by {mode}")
            raise hinted(refused, _ELSE)


def _files(table: TableHandle, predicate: str | None) -> "pyarrow.Table":
    import pyarrow
    import pyarrow.compute

    columns = [
        "path",
        "size",
        "modification_time",
        "partition_values",
        "num_records",
        "stats",
        "deletion_vector",
    ]
    return pyarrow.table(table._snapshot.files(columns, predicate))


def _local(uri: str) -> Any:
    from urllib.request import url2pathname  # Imported here because importing urllib.request takes long.

    import pyarrow.fs

    location = urlsplit(uri)
    if location.scheme != "file":
        refused = UnsupportedFeatureError(f"to_pyarrow_dataset needs a filesystem for {uri}")
        raise hinted(
            refused, "pass a pyarrow.fs.SubTreeFileSystem with the table as its root, or use to_arrow()"
        )
    return pyarrow.fs.SubTreeFileSystem(url2pathname(location.path), pyarrow.fs.LocalFileSystem())


def _inside(path: str) -> str:
    if path.startswith("/") or "://" in path:
        refused = UnsupportedFeatureError(
            f"to_pyarrow_dataset cannot read {path}, which is outside the table"
        )
        raise hinted(refused, _ELSE)
    return path


def _known(file: dict[str, Any]) -> Any:
    """Returns an expression that is true for all rows of a file, from its partition values and bounds."""
    import pyarrow.dataset

    conditions = []
    for name, value in (file["partition_values"] or {}).items():
        field = pyarrow.dataset.field(name)
        conditions.append(field.is_null() if value is None else field == value)
    stats = file["stats"] or {}
    least, greatest = stats.get("minValues") or {}, stats.get("maxValues") or {}
    nulls = stats.get("nullCount") or {}
    for name, value in least.items():
        bounds = (value, greatest.get(name))
        if not all(map(_is_bound, bounds)):
            continue
        field = pyarrow.dataset.field(name)
        inside = (field >= bounds[0]) & (field <= bounds[1])
        conditions.append(inside if nulls.get(name) == 0 else inside | field.is_null())
    return functools.reduce(operator.and_, conditions, pyarrow.dataset.scalar(True))


def _is_bound(value: object) -> bool:
    """Returns whether a minimum or maximum in the log is certainly a bound of the column's values.

    Bounds of floats ignore NaN. Other writers truncate times, and write wrong bounds for large decimals.
    """
    return isinstance(value, (int, str, date)) and not isinstance(value, (bool, datetime))
