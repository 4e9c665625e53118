"""Runs several dbt commands in one Spark session: `python run.py seed "run --select merged"`."""

import shlex
import sys

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import deltalog.spark

builder = SparkSession.builder.enableHiveSupport()
spark = deltalog.spark.configure(builder).getOrCreate()
for command in sys.argv[1:]:
    done = dbtRunner().invoke(shlex.split(command))
    if not done.success:
        sys.exit(f"dbt {command} has failed: {done.exception}")
spark.stop()
