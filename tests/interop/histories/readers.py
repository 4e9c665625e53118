"""Reads a table at each of its versions with deltalog, `deltalake` and the JVM connector."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

import deltalog
from tests.golden.canonical import rows
from tests.interop.conftest import Jvm


@dataclass(frozen=True)
class Seen:
    """The content of a version, as a reader returns it."""

    rows: list[str]
    protocol: tuple[int, int, frozenset[str], frozenset[str]]
    schema: Any
    partition_by: list[str]
    properties: dict[str, str]
    applications: dict[str, int]
    clustered_by: list[str]

    def differences(self, other: Seen) -> list[str]:
        """Returns the names of the parts in which two results differ, with the content that only one of them has."""
        found = [
            f"{name}: {mine!r} is not {theirs!r}"
            for name, mine in vars(self).items()
            if name != "rows" and mine != (theirs := vars(other)[name])
        ]
        return [*found, diff(self.rows, other.rows)] if self.rows != other.rows else found


def diff(found: list[str], wanted: list[str]) -> str:
    """Returns the first rows that only one of two results has, or that one of them has more often."""
    more, fewer = Counter(found), Counter(wanted)
    lines = [*[f"+ {row}" for row in (more - fewer)][:5], *[f"- {row}" for row in (fewer - more)][:5]]
    return "\n".join(lines)


def of_table(
    table: deltalog.DeltaTable | deltalake.DeltaTable,
    data: pa.Table,
    applications: dict[str, int],
    clustered_by: list[str],
) -> Seen:
    """Returns the parts of a version that `deltalog` and `deltalake` return in the same form."""
    protocol, metadata = table.protocol(), table.metadata()
    return Seen(
        rows(data),
        (
            protocol.min_reader_version,
            protocol.min_writer_version,
            frozenset(protocol.reader_features or []),
            frozenset(protocol.writer_features or []),
        ),
        json.loads(table.schema().to_json()),
        metadata.partition_columns,
        metadata.configuration,
        applications,
        clustered_by,
    )


def read_ours(path: Path, version: int) -> Seen:
    table = deltalog.DeltaTable(path, version=version)
    found = table.verify()
    assert found.ok, f"the checksum of version {version} differs from the log: {found}"
    return of_table(
        table, pa.table(table.to_arrow()), table.transaction_versions(), table.clustering_columns()
    )


def read_deltalake(path: Path, version: int, like: Seen) -> Seen:
    """Reads a version with `deltalake`. The clustering columns come from `like`, because `deltalake` does not return
    them. The names of the applications also come from `like`, because `deltalake` returns the progress of an
    application only by its name.
    """
    table = deltalake.DeltaTable(path, version=version)
    asked = {name: table.transaction_version(name) for name in like.applications}
    applications = {name: known for name, known in asked.items() if known is not None}
    return of_table(table, pa.table(table.scan()), applications, like.clustered_by)


def read_connector(jvm: Jvm, path: Path, versions: list[int]) -> list[Seen]:
    """Reads all versions in one request."""
    found = []
    for table, state in jvm.versions(path, versions):
        protocol, metadata = state["protocol"]["protocol"], state["metadata"]["metaData"]
        found.append(
            Seen(
                rows(table),
                (
                    protocol["minReaderVersion"],
                    protocol["minWriterVersion"],
                    frozenset(protocol.get("readerFeatures", [])),
                    frozenset(protocol.get("writerFeatures", [])),
                ),
                json.loads(metadata["schemaString"]),
                metadata["partitionColumns"],
                metadata["configuration"],
                {entry["txn"]["appId"]: entry["txn"]["version"] for entry in state["applications"]},
                clustered_by(json.loads(metadata["schemaString"]), state["domains"]),
            )
        )
    return found


def clustered_by(schema: Any, domains: list[Any]) -> list[str]:
    """Returns the clustering columns of a table, which are all at the top level. Protocol: "Clustered Table"."""
    physical = {
        column["metadata"].get("delta.columnMapping.physicalName", column["name"]): column["name"]
        for column in schema["fields"]
    }
    for domain in (domain["domainMetadata"] for domain in domains):
        if domain["domain"] == "delta.clustering" and not domain["removed"]:
            return [physical[name] for (name,) in json.loads(domain["configuration"])["clusteringColumns"]]
    return []
