"""Delta tables for Python and Spark without the JVM connector.

    from deltalog import DeltaTable, write_deltalake

    write_deltalake("/data/flights", flights, mode="append", partition_by=["month"])
    table = DeltaTable("/data/flights")
    rows = pyarrow.table(table.to_arrow(columns=["carrier", "delay"], predicate="month = 7"))

Data goes in and out through the Arrow PyCapsule interface, which pyarrow, polars, pandas, duckdb and others
know. None of them is required. For PySpark see `deltalog.spark`.
"""

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
from deltalog.schema import ArrayType, Field, Identity, MapType, PrimitiveType, Schema, StructType
from deltalog.table import DeltaTable, Metadata, Protocol
from deltalog.table.alter import TableAlterer
from deltalog.table.log import Commit
from deltalog.table.merge import TableMerger
from deltalog.table.optimize import TableOptimizer
from deltalog.table.stream import StreamBacklog, StreamBatch, TableStream
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
    "Protocol",
    "Schema",
    "SchemaMismatchError",
    "StreamBacklog",
    "StreamBatch",
    "StructType",
    "TableAlreadyExistsError",
    "TableAlterer",
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
    "storage",
    "upkeep",
    "write_deltalake",
]
