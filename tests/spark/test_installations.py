"""deltalog works if its installation is read-only, or is removed while its JVM runs."""

import os
import shutil
from pathlib import Path

import pytest

import deltalog
from tests.spark.processes import run_python

pytestmark = pytest.mark.newest

CODE = """
    import shutil
    from pathlib import Path
    from pyspark.sql import SparkSession
    import deltalog.spark

    assert Path(deltalog.__file__).is_relative_to({installed!r}), deltalog.__file__
    builder = SparkSession.builder.master("local-cluster[1,1,1024]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.executor.memory", "1g")
    spark = deltalog.spark.configure(builder).getOrCreate()

    def change(version):
        spark.range(4).write.format("deltalog").mode("append").save({path!r})
        spark.sql("DELETE FROM deltalog.`{path}` WHERE id = 3")
        spark.sql("MERGE INTO deltalog.`{path}` t USING (SELECT 2 id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
        rows = spark.read.format("deltalog").load({path!r}).sort("id").collect()
        print([row.id for row in rows], deltalog.DeltaTable({path!r}).version())

    change(2)
    {then}
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Creates a directory with a read-only copy of the package."""
    directory = tmp_path / "installed"
    package = Path(deltalog.__file__).parent
    shutil.copytree(package, directory / "deltalog", ignore=shutil.ignore_patterns("java", "__pycache__"))
    for root, _, files in os.walk(directory):
        for name in files:
            Path(root, name).chmod(0o444)
        Path(root).chmod(0o555)
    return directory


def inside(directory: Path) -> dict[str, tuple[int, int]]:
    """Returns the size and the modification time of everything in a directory. These also reveal writes by the
    superuser, whom permissions do not stop.
    """
    found = {}
    for path in [directory, *directory.rglob("*")]:
        state = path.stat()
        found[str(path)] = (state.st_size, state.st_mtime_ns)
    return found


def run(installed: Path, path: str, then: str = "") -> list[str]:
    """Runs a program that imports the copy, and returns its output."""
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    environment = {"PYTHONPATH": os.pathsep.join([str(installed), *rest]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = run_python(CODE.format(installed=str(installed), path=path, then=then), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_an_installation_is_only_read(installed: Path, path: str) -> None:
    """Nothing is written into the installation, because it may be in a system directory or on a read-only file
    system.
    """
    before = inside(installed)
    assert run(installed, path) == ["[0, 1] 2"]
    assert inside(installed) == before


def test_a_removed_installation_still_works_for_its_sessions(installed: Path, path: str) -> None:
    """`pip install --upgrade` removes the old installation while sessions use it, and executors may start at any time.
    The sessions continue to work.
    """
    gone = f"""
    for item in [Path({str(installed)!r}), *Path({str(installed)!r}).rglob("*")]:
        item.chmod(0o755)
    shutil.rmtree({str(installed)!r})
    spark.sparkContext._jsc.sc().killAndReplaceExecutor("0")
    change(5)
    """
    assert run(installed, path, gone) == ["[0, 1] 2", "[0, 0, 1, 1] 5"]
