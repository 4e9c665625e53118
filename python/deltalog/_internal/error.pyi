"""Raises errors of the crate as the classes of `deltalog.errors`."""

from deltalog.errors import AccessDeniedError as AccessDeniedError
from deltalog.errors import CommitConflictError as CommitConflictError
from deltalog.errors import CommitStateUnknownError as CommitStateUnknownError
from deltalog.errors import CommittedInterrupt as CommittedInterrupt
from deltalog.errors import CorruptDataError as CorruptDataError
from deltalog.errors import CorruptLogError as CorruptLogError
from deltalog.errors import DeltaError as DeltaError
from deltalog.errors import InternalError as InternalError
from deltalog.errors import InvalidArgumentError as InvalidArgumentError
from deltalog.errors import MissingFileError as MissingFileError
from deltalog.errors import NotATableError as NotATableError
from deltalog.errors import SchemaMismatchError as SchemaMismatchError
from deltalog.errors import TableAlreadyExistsError as TableAlreadyExistsError
from deltalog.errors import TableReplacedError as TableReplacedError
from deltalog.errors import UnavailableError as UnavailableError
from deltalog.errors import UnknownCommitInterrupt as UnknownCommitInterrupt
from deltalog.errors import UnsupportedFeatureError as UnsupportedFeatureError
from deltalog.errors import VersionNotFoundError as VersionNotFoundError
