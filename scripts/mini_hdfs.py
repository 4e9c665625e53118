"""Fetches an HDFS cluster that runs in one process, for the tests of object stores.

    python -m scripts.mini_hdfs DIRECTORY

The jars of Hadoop's client, which the cluster also needs, are copied from PySpark. The other jars are fetched in the
same way as in `jvm_connector.py`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from scripts.hadoop_aws import hadoop_version
from scripts.jvm_connector import fetch, spark_jars

# The code that starts the cluster belongs to Hadoop's tests, and uses JUnit's assertions.
JUNIT = "5.13.4"
JUNIT_PLATFORM = "1.13.4"
OPENTEST4J = "1.3.0"

# The jars that are copied from PySpark.
COPIED = ("hadoop-client-api-*", "hadoop-client-runtime-*", "slf4j-api-*", "log4j-*", "jcl-over-slf4j-*")


def ivy_module(hadoop: str) -> str:
    wanted = "\n".join(
        f'    <dependency org="{organisation}" name="{name}" rev="{version}" transitive="false"/>'
        for organisation, name, version in (
            ("org.apache.hadoop", "hadoop-client-minicluster", hadoop),
            ("org.junit.jupiter", "junit-jupiter-api", JUNIT),
            ("org.junit.platform", "junit-platform-commons", JUNIT_PLATFORM),
            ("org.opentest4j", "opentest4j", OPENTEST4J),
        )
    )
    return f"""<ivy-module version="2.0">
  <info organisation="deltalog" module="mini-hdfs"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
{wanted}
  </dependencies>
</ivy-module>
""".replace("->", "-&gt;")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch a cluster of HDFS in one process.")
    parser.add_argument("directory", type=Path, help="directory for the jars; replaced")
    directory = parser.parse_args().directory.resolve()
    hadoop = hadoop_version()
    expected = [
        f"hadoop-client-minicluster-{hadoop}",
        f"junit-jupiter-api-{JUNIT}",
        f"junit-platform-commons-{JUNIT_PLATFORM}",
        f"opentest4j-{OPENTEST4J}",
    ]
    fetch(directory, "mini_hdfs", ivy_module(hadoop), expected)
    for pattern in COPIED:
        for jar in spark_jars().glob(f"{pattern}.jar"):
            shutil.copy(jar, directory)
    for jar in sorted(directory.glob("*.jar")):
        print(jar)


if __name__ == "__main__":
    main()
