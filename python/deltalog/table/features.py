"""Names of table features."""

from enum import Enum

__all__ = ["TableFeatures"]


class TableFeatures(str, Enum):
    """Table features under the names that `deltalake` uses. The value of each is the feature's name in the protocol.

    Methods that take a feature also accept its name as a string: `"deletionVectors"`.
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
