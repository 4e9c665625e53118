"""The batches of a stream, one by one."""

from typing import final

@final
class ArrowBatch:
    """Rows of a stream. Arrow libraries can import them; programs without such a library can read them as texts."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int: ...
    def slice(self, offset: int = 0, length: int | None = None) -> ArrowBatch:
        """Returns rows of the batch, without copying them. If there are fewer rows, both numbers are reduced."""
    def texts(self) -> list[list[str | None]]:
        """Returns the values of each column as text that people read; None for NULL."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
