"""Spark reads and writes warn about an option if its name is a misspelling of one of our options."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("pyspark")

from deltalog.spark.options import Options


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("versonAsOf", "versionAsOf"),
        ("timestamAsOf", "timestampAsOf"),
        ("mergeSchemas", "mergeSchema"),
        ("replacewher", "replaceWhere"),
        ("partitionOverwriteMod", "partitionOverwriteMode"),
        ("userMetdata", "userMetadata"),
    ],
)
def test_misspelled_options_cause_a_warning(option: str, meant: str) -> None:
    for check in (Options.check_read, Options.check_write):
        with pytest.warns(UserWarning, match=f"'{option.lower()}' has no effect: did you mean '{meant}'"):
            check(Options({option: "1", "path": "x"}))


def test_other_options_are_not_warned_of() -> None:
    given = {
        "versionasof": "1",
        "PATH": "x",
        "header": "true",
        "mergeSchema": "true",
        "fs.s3a.access.key": "k",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Options({**given, "spark": "1", "__partition_columns": "[]"}).check_read()
