"""Delta tables for Python and Spark without the JVM connector.

    from deltalog import DeltaTable, write_deltalake

    write_deltalake("/data/flights", flights, mode="append", partition_by=["month"])
    table = DeltaTable("/data/flights")
    rows = pyarrow.table(table.to_arrow(columns=["carrier", "delay"], predicate="month = 7"))

Rows are passed through the Arrow PyCapsule interface, which pyarrow, polars, pandas, duckdb and other libraries
support. None of them is required. For PySpark see `deltalog.spark`.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog import exceptions, storage, upkeep
    from deltalog._internal import AlreadyApplied, __version__
    from deltalog.clone import CloneResult
    from deltalog.commit import CommitProperties, Transaction
    from deltalog.convert import ConversionPlan, convert_to_delta, convert_to_deltalake, plan_conversion
    from deltalog.distributed import DistributedWrite, Fragment, WriteTask, begin_write
    from deltalog.errors import (
        AccessDeniedError,
        AfterCommitError,
        CommitConflictError,
        CommitStateUnknownError,
        CommittedInterrupt,
        CorruptDataError,
        CorruptLogError,
        DeltaError,
        DeltaProtocolError,
        InternalError,
        InvalidArgumentError,
        MissingFileError,
        NotATableError,
        SchemaMismatchError,
        TableAlreadyExistsError,
        TableReplacedError,
        UnavailableError,
        UnknownCommitInterrupt,
        UnsupportedFeatureError,
        VersionNotFoundError,
    )
    from deltalog.observing import Progress, progress
    from deltalog.queries import sql
    from deltalog.schema import ArrayType, Field, Identity, MapType, PrimitiveType, Schema, StructType
    from deltalog.table import DeltaTable, Metadata, Protocol
    from deltalog.table.alter import TableAlterer
    from deltalog.table.features import TableFeatures
    from deltalog.table.log import Commit
    from deltalog.table.merge import TableMerger
    from deltalog.table.optimize import TableOptimizer
    from deltalog.table.stream import StreamBacklog, StreamBatch, TableStream
    from deltalog.table.tasks import ScanSize, ScanTask
    from deltalog.table.vacuum import VacuumPlan, VacuumResult
    from deltalog.verification import Difference, Verification
    from deltalog.writer import write_deltalake
    from deltalog.writer_properties import BloomFilterProperties, ColumnProperties, WriterProperties

__all__ = [
    "AccessDeniedError",
    "AfterCommitError",
    "AlreadyApplied",
    "ArrayType",
    "BloomFilterProperties",
    "CloneResult",
    "ColumnProperties",
    "Commit",
    "CommitConflictError",
    "CommitProperties",
    "CommitStateUnknownError",
    "CommittedInterrupt",
    "ConversionPlan",
    "CorruptDataError",
    "CorruptLogError",
    "DeltaError",
    "DeltaProtocolError",
    "DeltaTable",
    "Difference",
    "DistributedWrite",
    "Field",
    "Fragment",
    "Identity",
    "InternalError",
    "InvalidArgumentError",
    "MapType",
    "Metadata",
    "MissingFileError",
    "NotATableError",
    "PrimitiveType",
    "Progress",
    "Protocol",
    "ScanSize",
    "ScanTask",
    "Schema",
    "SchemaMismatchError",
    "StreamBacklog",
    "StreamBatch",
    "StructType",
    "TableAlreadyExistsError",
    "TableAlterer",
    "TableFeatures",
    "TableMerger",
    "TableOptimizer",
    "TableReplacedError",
    "TableStream",
    "Transaction",
    "UnavailableError",
    "UnknownCommitInterrupt",
    "UnsupportedFeatureError",
    "VacuumPlan",
    "VacuumResult",
    "Verification",
    "VersionNotFoundError",
    "WriteTask",
    "WriterProperties",
    "__version__",
    "begin_write",
    "convert_to_delta",
    "convert_to_deltalake",
    "exceptions",
    "plan_conversion",
    "progress",
    "sql",
    "storage",
    "upkeep",
    "write_deltalake",
]

# The module that defines each name. A module is imported when one of its names is first used, so that programs which
# use only a part of the package, such as the command line, start faster.
_NAMES = {
    "_internal": (
        "AlreadyApplied",
        "__version__",
    ),
    "clone": ("CloneResult",),
    "commit": (
        "CommitProperties",
        "Transaction",
    ),
    "convert": (
        "ConversionPlan",
        "convert_to_delta",
        "convert_to_deltalake",
        "plan_conversion",
    ),
    "distributed": (
        "DistributedWrite",
        "Fragment",
        "WriteTask",
        "begin_write",
    ),
    "errors": (
        "AccessDeniedError",
        "AfterCommitError",
        "CommitConflictError",
        "CommitStateUnknownError",
        "CommittedInterrupt",
        "CorruptDataError",
        "CorruptLogError",
        "DeltaError",
        "DeltaProtocolError",
        "InternalError",
        "InvalidArgumentError",
        "MissingFileError",
        "NotATableError",
        "SchemaMismatchError",
        "TableAlreadyExistsError",
        "TableReplacedError",
        "UnavailableError",
        "UnknownCommitInterrupt",
        "UnsupportedFeatureError",
        "VersionNotFoundError",
    ),
    "observing": (
        "Progress",
        "progress",
    ),
    "queries": ("sql",),
    "schema": (
        "ArrayType",
        "Field",
        "Identity",
        "MapType",
        "PrimitiveType",
        "Schema",
        "StructType",
    ),
    "table": (
        "DeltaTable",
        "Metadata",
        "Protocol",
    ),
    "table.alter": ("TableAlterer",),
    "table.features": ("TableFeatures",),
    "table.log": ("Commit",),
    "table.merge": ("TableMerger",),
    "table.optimize": ("TableOptimizer",),
    "table.stream": (
        "StreamBacklog",
        "StreamBatch",
        "TableStream",
    ),
    "table.tasks": ("ScanSize", "ScanTask"),
    "table.vacuum": (
        "VacuumPlan",
        "VacuumResult",
    ),
    "verification": (
        "Difference",
        "Verification",
    ),
    "writer": ("write_deltalake",),
    "writer_properties": (
        "BloomFilterProperties",
        "ColumnProperties",
        "WriterProperties",
    ),
}

_MODULES = (
    "arguments",
    "arrow_data",
    "checked",
    "clone",
    "commit",
    "convert",
    "credentials",
    "distributed",
    "errors",
    "exceptions",
    "filters",
    "schema",
    "storage",
    "table",
    "upkeep",
    "verification",
    "writer",
    "writer_properties",
)
"""Modules that are attributes of the package after `import deltalog`, as if they had been imported."""

_PLACES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name in _MODULES:
            return import_module(f"deltalog.{name}")
        if name not in _PLACES:
            raise AttributeError(f"module 'deltalog' has no attribute {name!r}")
        value = getattr(import_module(f"deltalog.{_PLACES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_MODULES})


# A process that `multiprocessing` has started may end without waiting for threads. So `upkeep` is imported at once: it
# makes the commits of such a process do their background work before they return.
_processes = sys.modules.get("multiprocessing.process")
if _processes is not None and _processes.parent_process() is not None:
    from deltalog import upkeep
