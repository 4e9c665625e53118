"""Parses the definition of a table that `TableDefinition.java` writes for a CREATE, a REPLACE or `saveAsTable`."""

import json
from typing import Any, NamedTuple

from deltalog.spark import schema
from deltalog.spark.errors import InvalidArgumentError
from deltalog.spark.protocol_properties import features_of_versions
from deltalog.spark.write.defaults import with_defaults

# Properties with which Spark passes information other than table properties to a catalog.
RESERVED = (
    "provider",
    "location",
    "comment",
    "owner",
    "external",
    "is_managed_location",
    "collation",
    "transient_lastDdlTime",
    "table_type",
)
_OF_SPARK = "__"
"""The prefix of the properties in which Spark stores the columns of partitions and clusters."""
_OPTION = "option."


class Definition(NamedTuple):
    """A table as a statement defines it."""

    name: str
    """The name in the session catalog, or the path."""
    database: str | None
    """None for a path."""
    schema_json: str
    partition_by: list[str]
    cluster_by: list[list[str]] | None
    properties: dict[str, str]
    mode: str
    """`create`, `replace`, `createOrReplace`, or `overwrite` for `saveAsTable`, which keeps an existing definition."""

    @classmethod
    def of(cls, text: str) -> "Definition":
        """Returns the definition in a JSON text."""
        parts = json.loads(text)
        partition_by: list[str] = []
        cluster_by = None
        for transform in parts["transforms"]:
            match transform["name"]:
                case "identity":
                    partition_by.append(_column(transform))
                case "cluster_by":
                    cluster_by = transform["columns"]
                case "bucket" | "sorted_bucket":
                    raise InvalidArgumentError(
                        "a Delta table cannot be bucketed: omit CLUSTERED BY … INTO … BUCKETS"
                    )
                case _:
                    raise InvalidArgumentError(
                        f"a Delta table is partitioned by columns, not by {transform['text']}: add a generated column "
                        "with this expression, and partition by it"
                    )
        names = ("name", "database", "properties", "mode")
        return cls(
            **{name: parts[name] for name in names},
            schema_json=schema.without_watermarks(parts["schema"]),
            partition_by=partition_by,
            cluster_by=cluster_by,
        )

    def with_defaults(self, defaults: dict[str, str]) -> "Definition":
        """Returns the definition with the session's default properties, for properties that it does not set itself."""
        return self._replace(properties=with_defaults(self.properties, defaults))

    @property
    def location(self) -> str | None:
        """The path that the statement gives, or None."""
        return self.name if self.database is None else self.properties.get("location")

    @property
    def is_managed(self) -> bool:
        is_external = "external" in self.properties or "location" in self.properties
        return not is_external or self.properties.get("is_managed_location") == "true"

    @property
    def provider(self) -> str:
        return self.properties.get("provider", "deltalog")

    @property
    def comment(self) -> str | None:
        return self.properties.get("comment")

    @property
    def options(self) -> dict[str, str]:
        """The options of the clause OPTIONS, with which the table is opened later."""
        return {
            name.removeprefix(_OPTION): value
            for name, value in self.properties.items()
            if name.startswith(_OPTION)
        }

    @property
    def configuration(self) -> dict[str, str]:
        """The table properties, without the options and other information that Spark passes among them."""
        options = self.options
        return features_of_versions(
            {
                name: value
                for name, value in self.properties.items()
                if name not in RESERVED and not name.startswith((_OPTION, _OF_SPARK)) and name not in options
            }
        )

    @property
    def has_columns(self) -> bool:
        return bool(json.loads(self.schema_json)["fields"])

    @property
    def clustering(self) -> list[str] | None:
        """The paths of the clustering columns as text."""
        if self.cluster_by is None:
            return None
        return [".".join(f"`{part.replace('`', '``')}`" for part in path) for path in self.cluster_by]


def _column(transform: dict[str, Any]) -> str:
    [path] = transform["columns"]
    if len(path) != 1:
        raise InvalidArgumentError(
            f"a Delta table is partitioned by columns, not by a field of a struct ({transform['text']})"
        )
    return str(path[0])
