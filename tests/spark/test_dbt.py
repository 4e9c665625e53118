"""Runs dbt with its materializations for Delta tables: the project of `docs/dbt.md`, in a session and through a Thrift
server.

dbt is installed from PyPI into a separate environment, because its requirements conflict with the tests' environment.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import deltalog
from deltalog.spark.configuration import jar
from tests import fetched
from tests.spark.servers import free_port, running, thrift_command

pytestmark = pytest.mark.newest

PROJECT = Path(__file__).parent / "dbt_project"
# Installing dbt-core 1.12 or newer would download a program.
PACKAGES = ("dbt-spark", "dbt-core<1.12", "PyHive[hive-pure-sasl]")
MORE = ("--vars", "{more: 5}")
STEPS = (
    ("seed",),
    ("run",),
    ("snapshot",),
    ("test",),
    ("run", *MORE),
    ("snapshot",),
    ("test",),
    ("docs", "generate"),
    ("seed", "--full-refresh"),
    ("run", "--full-refresh", "--select", "appended"),
)

SHOWN = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_has_the_project(root: Path) -> None:
    shown = dict(SHOWN.findall((root / "docs" / "dbt.md").read_text()))
    assert {"run.py", "profiles.yml", "dbt_project.yml", "models/merged.sql", "snapshots/seen.sql"} <= set(
        shown
    )
    assert shown == {name: (PROJECT / name).read_text() for name in shown}


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a Python interpreter with dbt, and with the PySpark and the deltalog under test."""
    return fetched.environment(tmp_path_factory.mktemp("dbt"), PACKAGES)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def environment(target: str, port: int) -> dict[str, str]:
    more = {"DBT_TARGET_NAME": target, "THRIFT_PORT": str(port), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    return {**os.environ, **more}


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_in_a_session(python: Path, project: Path) -> None:
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"{project}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={project}/metastore;create=true",
    }
    (project / "conf").mkdir()
    (project / "conf" / "spark-defaults.conf").write_text(
        "".join(f"{name} {value}\n" for name, value in settings.items())
    )
    command = [str(python), "-W", "ignore", "run.py", *map(shlex.join, STEPS)]
    done = subprocess.run(
        command,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env=environment("session", 1) | {"SPARK_CONF_DIR": str(project / "conf")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check(project)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_through_a_thrift_server(python: Path, project: Path) -> None:
    port = free_port()
    server = thrift_command(port, project, "--driver-class-path", jar())
    dbt = [str(python), "-c", "from dbt.cli.main import cli; cli()"]
    with running(server, port, project, project / "server.log"):
        for step in STEPS:
            done = subprocess.run(
                [*dbt, *step, "--profiles-dir", "."],
                cwd=project,
                capture_output=True,
                text=True,
                check=False,
                env=environment("thrift", port),
            )
            assert done.returncode == 0, done.stdout + done.stderr
    check(project)


def check(project: Path) -> None:
    """Checks the tables after all steps."""

    def table(name: str) -> deltalog.DeltaTable:
        return deltalog.DeltaTable(project / "warehouse" / "shop.db" / name)

    def rows(name: str, *columns: str) -> list[tuple[Any, ...]]:
        found = table(name).to_pyarrow_table().select(columns)
        return sorted(tuple(row.values()) for row in found.to_pylist())

    def operations(name: str) -> list[str]:
        return [commit["operation"] for commit in reversed(table(name).history())]

    assert rows("orders", "id", "customer") == [(1, "ann"), (2, "bob"), (3, "ann")]
    assert rows("per_customer", "customer", "orders") == [("ann", 1), ("bob", 1)]
    assert table("per_customer").metadata().partition_columns == ["customer"]
    assert rows("merged", "id", "amount", "note") == [(1, 15, "added"), (2, 25, "added"), (3, 35, "added")]
    assert {"ADD COLUMNS", "MERGE"} <= set(operations("merged"))
    assert table("merged").metadata().description == "Orders by their ids."
    replaced = "CREATE OR REPLACE TABLE AS SELECT"
    assert operations("appended") == [replaced, "WRITE", replaced]
    assert sorted(amount for (amount,) in rows("days", "amount")) == [10, 20, 35]
    assert rows("refreshed", "id", "amount") == [(1, 10), (2, 20), (3, 35)]
    assert operations("refreshed") == [replaced, "DELETE", "WRITE"]
    assert len(rows("seen", "id")) == 6
    assert operations("seen")[-1] == "MERGE"
    catalog = json.loads((project / "target" / "catalog.json").read_text())
    assert list(catalog["nodes"]["model.shop.merged"]["columns"]) == ["id", "customer", "amount", "note"]
    assert catalog["errors"] is None
