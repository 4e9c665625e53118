"""`delta_kernel` without statistics and row transforms, which a caller that only lists files does not need."""

from __future__ import annotations

from typing import Any

from benches.contenders import delta_kernel
from benches.watch import Watch


def open_list(watch: Watch, table: str) -> dict[str, Any]:
    return delta_kernel.open_list(watch, table, "lean")
