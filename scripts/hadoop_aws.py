"""Fetches Hadoop's S3 connector, which Spark needs to read and write data files in the tests of object stores.

    python -m scripts.hadoop_aws DIRECTORY

PySpark has the other jars of Hadoop, but not this one. The connector depends on a single jar of more than half a
gigabyte, which contains Amazon's whole SDK. Instead of this jar, the script fetches only the modules of the SDK that
the connector uses, 12 MB in total, in the same way as `jvm_connector.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.jvm_connector import fetch, spark_jars

# The versions with which the connector of Hadoop 3.5.0 was built.
SDK = "2.35.4"
ACCELERATOR = "1.3.1"
MODULES = ("s3", "sts", "s3-transfer-manager", "apache-client", "netty-nio-client")
# Spark already ships these modules, some of them in newer versions.
EXCLUDED = ("io.netty", "org.slf4j", "org.apache.httpcomponents", "commons-logging", "commons-codec")


def hadoop_version() -> str:
    """Returns the version of Hadoop that PySpark contains."""
    [jar] = spark_jars().glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def ivy_module(hadoop: str) -> str:
    modules = "\n".join(
        f'    <dependency org="software.amazon.awssdk" name="{name}" rev="{SDK}" conf="default->default,runtime"/>'
        for name in MODULES
    )
    excluded = "\n".join(f'    <exclude org="{organisation}"/>' for organisation in EXCLUDED)
    return f"""<ivy-module version="2.0">
  <info organisation="deltalog" module="hadoop-aws"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconfmapping="default->default">
    <dependency org="org.apache.hadoop" name="hadoop-aws" rev="{hadoop}" transitive="false"/>
    <dependency
        org="software.amazon.s3.analyticsaccelerator" name="analyticsaccelerator-s3" rev="{ACCELERATOR}"
        transitive="false"/>
{modules}
{excluded}
  </dependencies>
</ivy-module>
""".replace("->", "-&gt;")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fetch Hadoop's connector for S3.")
    parser.add_argument("directory", type=Path, help="directory for the jars; replaced")
    directory = parser.parse_args().directory.resolve()
    hadoop = hadoop_version()
    expected = [f"hadoop-aws-{hadoop}", f"s3-{SDK}", f"analyticsaccelerator-s3-{ACCELERATOR}"]
    for jar in fetch(directory, "hadoop_aws", ivy_module(hadoop), expected):
        print(jar)


if __name__ == "__main__":
    main()
