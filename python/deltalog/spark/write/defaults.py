"""The default properties that a session defines for new tables."""

from deltalog.spark.write.settings import Settings

_DEFAULTS = "spark.databricks.delta.properties.defaults."


def defaults_of(settings: Settings) -> dict[str, str]:
    """Returns the session's default properties of new tables.

    The settings are the JVM connector's: `spark.databricks.delta.properties.defaults.appendOnly` sets the property
    `delta.appendOnly`.
    """
    return {
        f"delta.{name.removeprefix(_DEFAULTS)}": value
        for name, value in settings.delta.items()
        if name.startswith(_DEFAULTS)
    }


def with_defaults(properties: dict[str, str], defaults: dict[str, str]) -> dict[str, str]:
    """Returns the properties of a new table, with the session's defaults for properties that are not given."""
    given = {name.lower() for name in properties}
    return {**{name: value for name, value in defaults.items() if name.lower() not in given}, **properties}
