package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * A snapshot as a relation that Spark scans like Parquet files, and INSERT INTO hands its rows to.
 *
 * dataSchema is the whole table's schema: of columns that are in both schemas Spark keeps the position in
 * dataSchema, so users see the table's own order of columns, and reads the partition columns from the index
 * only.
 */
public class DeltalogRelation extends HadoopFsRelation implements InsertableRelation {
  public DeltalogRelation(FileIndex index, StructType partitionSchema, StructType schema, FileFormat format, Map options, SparkSession session) {
    super(index, partitionSchema, schema, Option.empty(), format, options, session);
  }

  public void insert(Dataset data, boolean overwrite) {
    Bridge.call("insert", new Object[] {sparkSession(), options(), data, Boolean.valueOf(overwrite)});
  }

  /** Spark copies relations to change their options; a copy must stay insertable. */
  public HadoopFsRelation copy(FileIndex index, StructType partitionSchema, StructType schema, Option buckets, FileFormat format, Map options, SparkSession session) {
    return new DeltalogRelation(index, partitionSchema, schema, format, options, session);
  }
}
