"""Names of table features."""

from enum import Enum

__all__ = ["TableFeatures"]


class TableFeatures(str, Enum):
    """Table features by the names that `deltalake` has for them. Each is the text of the protocol's name.

    Wherever a feature is expected, its name as text does the same: `"deletionVectors"`.
    """

    AppendOnly = "appendOnly"
    ChangeDataFeed = "changeDataFeed"
    CheckConstraints = "checkConstraints"
    ColumnMapping = "columnMapping"
    DeletionVectors = "deletionVectors"
    DomainMetadata = "domainMetadata"
    GeneratedColumns = "generatedColumns"
    IcebergCompatV1 = "icebergCompatV1"
    IdentityColumns = "identityColumns"
    Invariants = "invariants"
    RowTracking = "rowTracking"
    TimestampWithoutTimezone = "timestampNtz"
    V2Checkpoint = "v2Checkpoint"
    VariantType = "variantType"
    VariantTypePreview = "variantType-preview"
