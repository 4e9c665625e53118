"""Packed file lists, which the Java classes of `deltalog.spark` unpack."""

from typing import final

@final
class SparkPlan:
    """A packed file list, which the Java classes of `deltalog.spark` unpack."""

    @property
    def kept(self) -> int:
        """The number of files in the list."""
    @property
    def total(self) -> int:
        """The number of files of the snapshot."""
    def __len__(self) -> int:
        """The size of the list in bytes."""
    def to_bytes(self) -> bytes: ...
    def write(self, path: str) -> None:
        """Writes the list to a file."""
