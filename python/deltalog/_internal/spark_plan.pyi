"""The packed file list for the Java side of `deltalog.spark`."""

from typing import final

@final
class SparkPlan:
    """A file list, packed for the Java side of `deltalog.spark`."""

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
