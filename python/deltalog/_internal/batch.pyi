"""The batches of a stream, one by one."""

from typing import final

@final
class ArrowBatch:
    """A batch of rows of a stream. Arrow libraries can import it; programs without such a library can read the values
    as strings.
    """

    @property
    def num_rows(self) -> int:
        """The number of rows."""
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int: ...
    def slice(self, offset: int = 0, length: int | None = None) -> ArrowBatch:
        """Returns a slice of the batch, without copying rows. If the batch has fewer rows, the offset and the length
        are reduced.
        """
    def texts(self) -> list[list[str | None]]:
        """Returns the values of each column as text for display; None for NULL."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
