"""Shows the protocol of a table as table properties, as the JVM connector does.

SHOW CREATE TABLE prints these properties. In a definition, `delta.minReaderVersion` and `delta.minWriterVersion`
request the features that these versions imply (PROTOCOL.md, "Valid Feature Names in Table Features"). The versions of
the new table follow from its features.
"""

from deltalog._internal import Snapshot
from deltalog.spark.errors import InvalidArgumentError

_READER, _WRITER = "delta.minReaderVersion", "delta.minWriterVersion"
FEATURE = "delta.feature."
# The features that each version introduces. In the last version of each protocol, a table lists its features by name.
_OF_READERS = {1: (), 2: ("columnMapping",), 3: ()}
_OF_WRITERS = {
    1: (),
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
    7: (),
}


def shown(snapshot: Snapshot) -> dict[str, str]:
    """Returns the protocol of a table as properties."""
    versions = {_READER: str(snapshot.min_reader_version), _WRITER: str(snapshot.min_writer_version)}
    features = {*(snapshot.reader_features or ()), *(snapshot.writer_features or ())}
    return versions | {f"{FEATURE}{feature}": "supported" for feature in features}


def features_of_versions(properties: dict[str, str]) -> dict[str, str]:
    """Returns the properties with protocol versions replaced by the features that they imply."""
    kept = {name: value for name, value in properties.items() if name not in (_READER, _WRITER)}
    implied: list[str] = []
    for name, known in ((_READER, _OF_READERS), (_WRITER, _OF_WRITERS)):
        if name in properties:
            implied += _implied(name, properties[name], known)
    return {f"{FEATURE}{feature}": "supported" for feature in implied} | kept


def _implied(name: str, value: str, known: dict[int, tuple[str, ...]]) -> list[str]:
    newest = max(known)
    if not value.isdecimal() or int(value) not in known:
        raise InvalidArgumentError(
            f"the table property {name} cannot be '{value}': set a number from 1 to {newest}, or omit it, because "
            "the columns and properties of a new table determine its protocol"
        )
    asked = int(value)
    older = known if asked < newest else {}
    return [feature for version, features in older.items() if version <= asked for feature in features]
