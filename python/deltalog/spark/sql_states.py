"""The SQLSTATEs of errors. For an error that the JVM connector also has, the SQLSTATE is the same."""

from deltalog import errors

# The SQLSTATEs by class. The first class that fits is used.
_STATES: tuple[tuple[type[BaseException], str], ...] = (
    (errors.CommitConflictError, "2D521"),
    (errors.CommitStateUnknownError, "08007"),
    (errors.AfterCommitError, "2DKD0"),
    (errors.NotATableError, "42P01"),
    (errors.TableReplacedError, "42P01"),
    (errors.TableAlreadyExistsError, "42P07"),
    (errors.VersionNotFoundError, "42815"),
    (errors.SchemaMismatchError, "42KDG"),
    (errors.UnsupportedFeatureError, "0AKDD"),
    (errors.InvalidArgumentError, "22023"),
    (errors.AccessDeniedError, "42501"),
    (errors.UnavailableError, "08006"),
    (errors.DeltaError, "XXKDS"),
)


def sql_state(error: BaseException) -> str | None:
    """Returns the SQLSTATE of an error, or None if it has none."""
    for kind, state in _STATES:
        if isinstance(error, kind):
            return state
    of_pyspark = getattr(error, "getSqlState", None)
    return None if of_pyspark is None else of_pyspark()


def kind_of(state: str | None) -> type[errors.DeltaError] | None:
    """Returns the first of deltalog's error classes with this SQLSTATE; None if no class has it."""
    for kind, own in _STATES:
        if own == state and issubclass(kind, errors.DeltaError):
            return kind
    return None
