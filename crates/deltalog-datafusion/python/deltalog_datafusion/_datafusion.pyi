"""Tables as structures of DataFusion."""

from collections.abc import Mapping, Sequence

DATAFUSION_MAJOR: int

class Table:
    @staticmethod
    def open(
        location: str,
        version: int | None,
        table_id: str,
        storage_options: Mapping[str, str],
        allowed_roots: Sequence[str],
    ) -> Table: ...
    @property
    def version(self) -> int: ...
    def capsule(self, session: object) -> object: ...
