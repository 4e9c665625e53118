"""The metrics that statements return."""

from typing import TypeVar, overload

__all__ = ["Metrics"]

_Default = TypeVar("_Default")


class Metrics(dict[str, int]):
    """Metrics under the JVM connector's names, such as `numDeletedRows`, which can also be accessed by `deltalake`'s
    names.

    `metrics["numDeletedRows"]` and `metrics["num_deleted_rows"]` return the same number.
    """

    def __missing__(self, name: str) -> int:
        own = _own(name)
        if own == name or own not in self:
            raise KeyError(name)
        return self[own]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and super().__contains__(_own(name)))

    @overload
    def get(self, name: str, default: None = None, /) -> int | None: ...
    @overload
    def get(self, name: str, default: int, /) -> int: ...
    @overload
    def get(self, name: str, default: _Default, /) -> int | _Default: ...
    def get(self, name: str, default: object = None, /) -> object:
        own = name if super().__contains__(name) else _own(name)
        return super().get(own, default)


def _own(name: str) -> str:
    """Returns the JVM connector's name for a name of `deltalake`: `numDeletedRows` for `num_deleted_rows`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
