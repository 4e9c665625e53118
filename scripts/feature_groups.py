"""Divides the Java classes into groups of features. If a build of Spark lacks classes that a group needs, only that
group cannot be used (`FeatureGroup.java`).

Classes outside of a group use the group only through its entry classes, after asking `FeatureGroup` whether it works.
So a class belongs to every group with an entry from which it can be reached. Classes that can be reached without
entries belong to the first group, which all other groups need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

READ = "read"

# The entry classes of each group: classes that Spark or Python call by name, and those through which other groups use
# the group.
ENTRIES = {
    READ: (
        "AnalyzerHook",
        "Bridge",
        "CachedTables",
        "CatalogEntries",
        "DefinitionPlans",
        "DeltaAlias",
        "DeltalogCatalog",
        "DeltalogException",
        "DeltalogExtensions",
        "DeltalogSource",
        "DriverClasses",
        "EntryColumns",
        "Locations",
        "NamedRows",
        "ParquetEntries",
        "PythonCalls",
        "SessionSettings",
        "SessionSetup",
        "StatementParser",
        "TableDefinition",
        "TableNames",
    ),
    "write": (
        "BinRows",
        "Bins",
        "CopyJob",
        "DeltalogWriteExec",
        "DynamicOverwrites",
        "EvolvingWrites",
        "FileJob",
        "FileRows",
        "HeldWrites",
        "OrderedRows",
        "ReplacingInserts",
        "WriteDescription",
    ),
    "statements": (
        "CarriedStatements",
        "ChangeVariables",
        "EvolvingMerges",
        "MergeEvolution",
        "MergeTargets",
        "OwnColumns",
        "ReplacingRows",
        "StatementCommand",
        "StatementExec",
        "StatementRule",
        "StatementRun",
        "VerbPlans",
    ),
    "own SQL": ("ProcedurePlans", "Procedures"),
    "streams": ("StreamSink", "StreamSource", "StreamTriggers"),
}


# The classes of the first group that use entries of other groups. Each of them asks `FeatureGroup` first.
USES = {
    "BaseCatalog": ("Procedures",),
    "DeltalogSource": ("StreamSink", "StreamSource"),
    "DeltalogStrategy": ("DeltalogWriteExec", "StatementCommand", "StatementExec"),
    "LostStatements": ("CarriedStatements",),
    "OwnStatement": ("ProcedurePlans",),
    "SessionRule": (
        "CarriedStatements",
        "ChangeVariables",
        "DynamicOverwrites",
        "EvolvingMerges",
        "EvolvingWrites",
        "HeldWrites",
        "MergeEvolution",
        "MergeTargets",
        "ReplacingInserts",
        "StatementRule",
        "StreamTriggers",
    ),
    "StatementParser": ("ProcedurePlans",),
}


class UngroupedError(Exception):
    """An entry class does not exist, a class cannot be reached from any entry, or an entry is used by a class that is
    not in `USES`.
    """


def grouped(
    references: Mapping[str, Iterable[str]],
    by_group: Mapping[str, Iterable[str]],
    uses: Mapping[str, Iterable[str]] = USES,
) -> dict[str, set[str]]:
    """Returns the classes of each group. The arguments are the classes to which each class refers, and the groups'
    entries.

    `uses` are the entries of other groups that each class of the first group may use.
    """
    entries = {name for names in by_group.values() for name in names}
    gone = entries - references.keys()
    beyond = entries - set(by_group[READ])
    always = _reached(references, by_group[READ], beyond)
    used = {(name, entry) for name in always for entry in beyond.intersection(references[name])}
    allowed = {(name, entry) for name, names in uses.items() for entry in names}
    if used != allowed:
        raise UngroupedError(
            "USES of scripts/feature_groups.py differs from the code; each use must ask FeatureGroup first; "
            f"new are {sorted(used - allowed)}, gone are {sorted(allowed - used)}"
        )
    groups = {
        group: _reached(references, names, always) for group, names in by_group.items() if group != READ
    }
    groups = {READ: always, **groups}
    ungrouped = references.keys() - set().union(*groups.values())
    if gone or ungrouped:
        raise UngroupedError(
            f"scripts/feature_groups.py has entries that are not classes: {sorted(gone)}, or lacks one for "
            f"{sorted(ungrouped)}"
        )
    return groups


def _reached(references: Mapping[str, Iterable[str]], names: Iterable[str], beyond: set[str]) -> set[str]:
    """Returns the classes that can be reached from `names` without passing through the classes in `beyond`."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and name in references:
            found.add(name)
            waiting += set(references[name]) - beyond
    return found
