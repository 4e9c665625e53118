"""The batches of a stream, one by one."""

from typing import final

@final
class ArrowBatch:
    """Rows of a stream. Arrow libraries take it, and a program without one can read its texts."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""
    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
    def __len__(self) -> int: ...
    def slice(self, offset: int = 0, length: int | None = None) -> ArrowBatch:
        """Returns rows of the batch, without copying them. Both numbers are cut to the rows that there are."""
    def texts(self) -> list[list[str | None]]:
        """Returns the values of each column as text that people read; None for NULL."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
