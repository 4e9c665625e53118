"""Makes the page of store options from the tables of option names in `storage`."""

from __future__ import annotations

from pathlib import Path

from scripts.reference.tables import entries, markdown, wrapped

__all__ = ["page"]

SOURCES = Path("crates/deltalog/src/storage")

START = """\
# Storage options

Options are passed as `storage_options=` in Python, as options of a read or write in Spark, as `-o name=value` on the
command line, and to `Storage::open` in Rust. Their names may be in upper or lower case. Options whose names begin with
`aws_`, `google_` or `azure_` are also read from environment variables, whose names are in upper case. An option that
the store does not have is an error. [Object stores](../stores.md) explains locations and credentials.

This page is generated from the code by `python -m scripts.reference`.

"""

SECTIONS = [
    (
        "Requests and retries",
        "For S3, Google Cloud Storage and Azure.",
        "cloud/options.rs",
        ("const RETRIES:", "const CLIENT:"),
    ),
    ("Reads", "For the same stores, and HDFS.", "cloud/options.rs", ("const READS:",)),
    ("The cache", "For the same stores, and HDFS.", "cache/settings.rs", ("const NAMES:",)),
    ("S3", "`s3://bucket/path`, also `s3a` and `s3n`.", "cloud/s3.rs", ("const NAMES:",)),
    ("Commits by DynamoDB", "For S3, in mixed fleets.", "cloud/log_store.rs", ("const NAMES:",)),
    ("Google Cloud Storage", "`gs://bucket/path`.", "cloud/gcs.rs", ("const NAMES:",)),
    (
        "Azure",
        "`abfss://container@account.dfs.core.windows.net/path`, also `abfs` and `wasbs`, and `az://container/path`.",
        "cloud/azure.rs",
        ("const NAMES:",),
    ),
    (
        "HDFS",
        (
            "`hdfs://host:port/path`, or `hdfs://nameservice/path`. Options whose names begin with `dfs.`, `fs.`, "
            "`hadoop.` or `ipc.` are settings of Hadoop."
        ),
        "cloud/hdfs.rs",
        ("const NAMES:",),
    ),
]


def page(root: Path) -> str:
    """Returns the page."""
    parts = [START]
    for title, about, file, starts in SECTIONS:
        text = (root / SOURCES / file).read_text("utf-8")
        rows = [
            (f"`{entry.name}`", entry.about, entry.default)
            for start in starts
            for entry in entries(text, start)
        ]
        parts.append(
            f"## {title}\n\n{wrapped(about)}\n\n{markdown(('option', 'what it is', 'default'), rows)}"
        )
    return "".join(parts).rstrip("\n") + "\n"
