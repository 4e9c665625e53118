"""The command `python -m deltalog.spark`, which prints the path of the jar."""

import argparse
import sys

from deltalog.errors import DeltaError
from deltalog.spark.configuration import jar


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m deltalog.spark", description="deltalog in Spark")
    commands = parser.add_subparsers(required=True)
    of_jar = commands.add_parser("jar", help="print the path of the jar for spark.jars")
    of_jar.add_argument(
        "--spark",
        metavar="RELEASE",
        help="the minor release of Spark, such as 4.2; by default PySpark's",
    )
    arguments = parser.parse_args()
    try:
        sys.stdout.write(jar(arguments.spark) + "\n")
    except DeltaError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
