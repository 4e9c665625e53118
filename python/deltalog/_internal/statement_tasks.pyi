"""DELETE, UPDATE and MERGE by tasks in several processes."""

from collections.abc import Mapping, Sequence
from typing import final

from deltalog._internal.commit_arguments import AlreadyApplied
from deltalog._internal.snapshot import Snapshot
from deltalog.arrow_types import ArrowData
from deltalog.credentials import CredentialProvider
from deltalog.spark.connect.writer import Committing

@final
class StatementTask:
    """The data that a task of a DELETE, UPDATE or MERGE by several processes needs. It can be pickled, without
    credentials.
    """

    def __new__(cls, json: str) -> StatementTask:
        """Creates a task from the text in its pickled form."""
    @staticmethod
    def begin(
        snapshot: Snapshot,
        statement: str,
        statement_id: str,
        app_transaction: tuple[str, int] | None = None,
    ) -> tuple[StatementTask, AlreadyApplied | None]:
        """Begins `DELETE`, `UPDATE` or `MERGE` on exactly the version of `snapshot`.

        `statement_id`, a UUID, names the directory of new files, and is the `txnId` of the commit. If the table has
        already recorded the statement for its application, the second value is an `AlreadyApplied`.

        Raises:
            UnsupportedFeatureError: the table has a feature, a rule or a change data feed that tasks cannot write.
            InvalidArgumentError: the table is append-only.
        """
    def run(
        self,
        data: ArrowData,
        storage_options: Mapping[str, str] | None = None,
        credential_provider: CredentialProvider | None = None,
    ) -> StatementFragment:
        """Carries out one task, and commits nothing. If the task fails, its files are deleted.

        `data` contains the rows with additional columns: `__deltalog_file` and `__deltalog_row`, as in
        `Snapshot.scan_partitions`, and `__deltalog_operation`, a number with these bits:

        - 1: the row at this position is removed.
        - 2: a row with these values of the table's columns is written.
        - 4: the row at this position matches a row of the source.
        - 8: the clause is a WHEN NOT MATCHED BY SOURCE.
        """
    def commit(
        self, snapshot: Snapshot, committing: Committing, fragments: Sequence[StatementFragment]
    ) -> tuple[dict[str, int], list[int]] | AlreadyApplied:
        """Commits the work of all tasks, and returns metrics and versions as `SparkStatement.commit` does.

        Without deletion vectors, the remaining rows are copied here. If the commit has definitely failed, all new files
        are deleted.
        """
    def delete(self, storage_options: Mapping[str, str] | None = None) -> None:
        """Deletes all files of a statement that was not committed."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...

@final
class StatementFragment:
    """The result of one task of a statement, as plain data. It can be pickled."""

    def __new__(cls, files: str, report: bytes) -> StatementFragment:
        """Creates a fragment from the parts of its pickled form."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
