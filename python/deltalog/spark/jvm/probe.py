"""A check that Spark has all classes that the native path uses.

Spark's internals may change with any release.
"""

from typing import Any

from deltalog.spark.jvm.compile import driver_loader, takes_jars

_DATASOURCES = "org.apache.spark.sql.execution.datasources"
_CATALYST = "org.apache.spark.sql.catalyst"
_CLASSES = (
    "org.codehaus.janino.Compiler",
    f"{_DATASOURCES}.FileIndex",
    f"{_DATASOURCES}.FileSourceStrategy$",
    f"{_DATASOURCES}.HadoopFsRelation",
    f"{_DATASOURCES}.InsertIntoHadoopFsRelationCommand",
    f"{_DATASOURCES}.PartitionDirectory",
    f"{_DATASOURCES}.parquet.ParquetFileFormat",
    f"{_DATASOURCES}.v2.DataSourceV2ScanRelation",
    f"{_DATASOURCES}.v2.V2CommandExec",
    f"{_CATALYST}.analysis.TableOutputResolver",
    f"{_CATALYST}.catalog.CatalogTable",
    f"{_CATALYST}.parser.SqlBaseLexer",
    f"{_CATALYST}.parser.UpperCaseCharStream",
    f"{_CATALYST}.plans.logical.Call",
    f"{_CATALYST}.plans.logical.LocalRelation",
    f"{_CATALYST}.rules.Rule",
    f"{_CATALYST}.types.DataTypeUtils",
    f"{_CATALYST}.expressions.DateFormatClass",
    "org.apache.spark.sql.classic.Dataset",
    "org.apache.spark.sql.classic.ExpressionUtils",
    "org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension",
    "org.apache.spark.sql.connector.catalog.ProcedureCatalog",
    "org.apache.spark.sql.connector.catalog.StagingTableCatalog",
    "org.apache.spark.sql.connector.catalog.SupportsDeleteV2",
    "org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering",
    "org.apache.spark.sql.execution.FileSourceScanExec",
    "org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand",
)


def missing_symbols(spark: Any) -> str:
    """Returns the names of missing classes, or an empty string if the native path can be used."""
    from py4j.protocol import Py4JJavaError

    jvm = spark.sparkContext._jvm
    loader = driver_loader(jvm)
    missing = []
    for name in _CLASSES:
        try:
            jvm.java.lang.Class.forName(name, False, loader)
        except Py4JJavaError:
            missing.append(name)
    if not takes_jars(loader):
        missing.append("a class loader of the driver to which jars can be added")
    return ", ".join(missing)
