"""What must be there before this package can work, each with the command that installs it."""

MINIMUM = (4, 0)
INSTALL = "pip install 'pyspark>=4'"


class PySparkRequired(ImportError):
    """PySpark is not installed, or too old."""


def require_pyspark() -> None:
    """Raises `PySparkRequired` unless PySpark 4 or newer can be imported."""
    try:
        from pyspark import __version__
    except ImportError as error:
        raise PySparkRequired(f"deltalog.spark needs PySpark, which is not installed: {INSTALL}", name="pyspark") from error
    if _parts(__version__) < MINIMUM:
        raise PySparkRequired(f"deltalog.spark needs PySpark 4 or newer, but {__version__} is installed: {INSTALL}", name="pyspark")


def _parts(version: str) -> tuple[int, int]:
    major, minor = (version.split(".") + ["0"])[:2]
    return int(major), int(minor)
