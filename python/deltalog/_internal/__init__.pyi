"""The compiled module: a thin layer over the Rust crate. Use `deltalog` instead of this module.

The compiled file is a single module. Its stubs are divided into one file for each file of `crates/deltalog-python/src`.
"""

from deltalog._internal.alter import TableChange as TableChange
from deltalog._internal.alter import alter_table as alter_table
from deltalog._internal.alter import drop_feature as drop_feature
from deltalog._internal.analyze import recompute_statistics as recompute_statistics
from deltalog._internal.batch import ArrowBatch as ArrowBatch
from deltalog._internal.clone import clone_table as clone_table
from deltalog._internal.commit_arguments import AlreadyApplied as AlreadyApplied
from deltalog._internal.convert import ConversionPlan as ConversionPlan
from deltalog._internal.convert import plan_conversion as plan_conversion
from deltalog._internal.create import create_table as create_table
from deltalog._internal.decoder import Decoder as Decoder
from deltalog._internal.distributed import DistributedWrite as DistributedWrite
from deltalog._internal.distributed import Fragment as Fragment
from deltalog._internal.distributed import WriteTask as WriteTask
from deltalog._internal.distributed import begin_write as begin_write
from deltalog._internal.encoder import Encoder as Encoder
from deltalog._internal.error import AccessDeniedError as AccessDeniedError
from deltalog._internal.error import CommitConflictError as CommitConflictError
from deltalog._internal.error import CommitStateUnknownError as CommitStateUnknownError
from deltalog._internal.error import CommittedInterrupt as CommittedInterrupt
from deltalog._internal.error import CorruptDataError as CorruptDataError
from deltalog._internal.error import CorruptLogError as CorruptLogError
from deltalog._internal.error import DeltaError as DeltaError
from deltalog._internal.error import InternalError as InternalError
from deltalog._internal.error import InvalidArgumentError as InvalidArgumentError
from deltalog._internal.error import MissingFileError as MissingFileError
from deltalog._internal.error import NotATableError as NotATableError
from deltalog._internal.error import SchemaMismatchError as SchemaMismatchError
from deltalog._internal.error import TableAlreadyExistsError as TableAlreadyExistsError
from deltalog._internal.error import TableReplacedError as TableReplacedError
from deltalog._internal.error import UnavailableError as UnavailableError
from deltalog._internal.error import UnknownCommitInterrupt as UnknownCommitInterrupt
from deltalog._internal.error import UnsupportedFeatureError as UnsupportedFeatureError
from deltalog._internal.error import VersionNotFoundError as VersionNotFoundError
from deltalog._internal.expression import default_value as default_value
from deltalog._internal.expression import evaluate as evaluate
from deltalog._internal.expression import expression_bytes as expression_bytes
from deltalog._internal.expression import function_names as function_names
from deltalog._internal.expression import rule_functions as rule_functions
from deltalog._internal.fragment import read_fragment as read_fragment
from deltalog._internal.handle import Commit as Commit
from deltalog._internal.handle import Commits as Commits
from deltalog._internal.handle import Recent as Recent
from deltalog._internal.handle import cache_statistics as cache_statistics
from deltalog._internal.handle import canonical_uri as canonical_uri
from deltalog._internal.handle import check_store as check_store
from deltalog._internal.handle import table_exists as table_exists
from deltalog._internal.log_store import register_log_store as register_log_store
from deltalog._internal.manifest import generate_manifests as generate_manifests
from deltalog._internal.optimize import optimize as optimize
from deltalog._internal.parquet_file import read_parquet as read_parquet
from deltalog._internal.progress import ProgressObserver as ProgressObserver
from deltalog._internal.repair import check_files as check_files
from deltalog._internal.repair import repair as repair
from deltalog._internal.restore import restore as restore
from deltalog._internal.snapshot import Snapshot as Snapshot
from deltalog._internal.snapshot import forget_snapshots as forget_snapshots
from deltalog._internal.spark_batch import SparkBatch as SparkBatch
from deltalog._internal.spark_changes import SparkChanges as SparkChanges
from deltalog._internal.spark_clone import SparkClone as SparkClone
from deltalog._internal.spark_optimize import SparkOptimize as SparkOptimize
from deltalog._internal.spark_plan import SparkPlan as SparkPlan
from deltalog._internal.spark_statement import SparkStatement as SparkStatement
from deltalog._internal.spark_write import SparkWrite as SparkWrite
from deltalog._internal.statement_tasks import StatementFragment as StatementFragment
from deltalog._internal.statement_tasks import StatementTask as StatementTask
from deltalog._internal.statements import delete_rows as delete_rows
from deltalog._internal.statements import merge_rows as merge_rows
from deltalog._internal.statements import update_rows as update_rows
from deltalog._internal.stream import ArrowStream as ArrowStream
from deltalog._internal.stream import arrow_stream as arrow_stream
from deltalog._internal.stream import schema_from_arrow as schema_from_arrow
from deltalog._internal.stream import schema_to_arrow as schema_to_arrow
from deltalog._internal.table_stream import TableStream as TableStream
from deltalog._internal.upkeep import run_upkeep_in_background as run_upkeep_in_background
from deltalog._internal.upkeep import wait_for_upkeep as wait_for_upkeep
from deltalog._internal.vacuum import VacuumPlan as VacuumPlan
from deltalog._internal.vacuum import plan_vacuum as plan_vacuum
from deltalog._internal.write import write_stream as write_stream

__all__ = [
    "AccessDeniedError",
    "AlreadyApplied",
    "ArrowBatch",
    "ArrowStream",
    "Commit",
    "CommitConflictError",
    "CommitStateUnknownError",
    "Commits",
    "CommittedInterrupt",
    "ConversionPlan",
    "CorruptDataError",
    "CorruptLogError",
    "Decoder",
    "DeltaError",
    "DistributedWrite",
    "Encoder",
    "Fragment",
    "InternalError",
    "InvalidArgumentError",
    "MissingFileError",
    "NotATableError",
    "ProgressObserver",
    "Recent",
    "SchemaMismatchError",
    "Snapshot",
    "SparkBatch",
    "SparkChanges",
    "SparkClone",
    "SparkOptimize",
    "SparkPlan",
    "SparkStatement",
    "SparkWrite",
    "StatementFragment",
    "StatementTask",
    "TableAlreadyExistsError",
    "TableChange",
    "TableReplacedError",
    "TableStream",
    "UnavailableError",
    "UnknownCommitInterrupt",
    "UnsupportedFeatureError",
    "VacuumPlan",
    "VersionNotFoundError",
    "WriteTask",
    "__version__",
    "alter_table",
    "arrow_stream",
    "begin_write",
    "cache_statistics",
    "canonical_uri",
    "check_files",
    "check_store",
    "clone_table",
    "create_table",
    "default_value",
    "delete_rows",
    "drop_feature",
    "evaluate",
    "expression_bytes",
    "forget_snapshots",
    "function_names",
    "generate_manifests",
    "merge_rows",
    "optimize",
    "plan_conversion",
    "plan_vacuum",
    "read_fragment",
    "read_parquet",
    "recompute_statistics",
    "register_log_store",
    "repair",
    "restore",
    "rule_functions",
    "run_upkeep_in_background",
    "schema_from_arrow",
    "schema_to_arrow",
    "table_exists",
    "update_rows",
    "wait_for_upkeep",
    "write_stream",
]

__version__: str
