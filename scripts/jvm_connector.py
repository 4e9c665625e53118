"""Fetches the jars of the JVM connector for Delta tables. Interop tests and benchmarks compare deltalog with the
connector; deltalog itself does not depend on it.

    python scripts/jvm_connector.py DIRECTORY

The script needs only Java and a Python with PySpark. Spark ships Ivy, which resolves the artifacts with its default
settings, or with the settings file that the environment variable DELTALOG_IVY_SETTINGS names (for networks with a
mirror). The directory is created only once all jars have been fetched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

VERSION = "4.4.0"
ARTIFACTS = (
    "delta-spark_4.2_2.13",
    "delta-storage",
    "delta-kernel-api",
    "delta-kernel-defaults",
    "delta-kernel-unitycatalog",
)


def ivy_module() -> str:
    """Returns the Ivy file that requests the connector's artifacts without their dependencies, which Spark
    already has.
    """
    wanted = "\n".join(
        f'    <dependency org="io.delta" name="{name}" rev="{VERSION}" transitive="false"/>'
        for name in ARTIFACTS
    )
    return f"""<ivy-module version="2.0">
  <info organisation="deltalog" module="jvm-connector"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default-&gt;default">
{wanted}
  </dependencies>
</ivy-module>
"""


def java() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        raise SystemExit("jvm_connector: no Java; scripts/prerequisites.sh says how to install it")
    return found


def spark_jars() -> Path:
    try:
        import pyspark
    except ImportError:
        raise SystemExit(
            f"jvm_connector: {sys.executable} has no PySpark, which contains Ivy; run this script through `make`"
        ) from None
    return Path(pyspark.__file__).parent / "jars"


def fetch(target: Path, script: str, module: str, expected: Sequence[str]) -> list[Path]:
    """Fetches the artifacts of the Ivy file `module` into a directory beside `target` and renames it, so that `target`
    is never incomplete. Exits with an error of `script` if a jar of `expected` is missing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".ivy-") as scratch:
        file = Path(scratch, "ivy.xml")
        file.write_text(module)
        jars = Path(scratch, "jars")
        command = [
            java(),
            f"-Divy.default.ivy.user.dir={scratch}/ivy",
            "-cp",
            f"{spark_jars()}/*",
            "org.apache.ivy.Main",
        ]
        settings = os.environ.get("DELTALOG_IVY_SETTINGS")
        command += ["-settings", settings] if settings else []
        command += ["-ivy", str(file), "-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
        command += ["-types", "jar", "bundle"]
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False
        )
        missing = [name for name in expected if not (jars / f"{name}.jar").is_file()]
        if ran.returncode != 0 or missing:
            raise SystemExit(f"{ran.stdout}\n{script}: could not fetch {', '.join(missing) or 'the jars'}")
        if target.exists():
            shutil.rmtree(target)
        jars.rename(target)
    return sorted(target.glob("*.jar"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch the jars of the JVM connector.")
    parser.add_argument("directory", type=Path, help="directory for the jars; replaced")
    directory = parser.parse_args().directory.resolve()
    expected = [f"{name}-{VERSION}" for name in ARTIFACTS]
    for jar in fetch(directory, "jvm_connector", ivy_module(), expected):
        print(jar)


if __name__ == "__main__":
    main()
