package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/**
 * A table as the target of INSERT. It has columns but no files. For a HadoopFsRelation with partition columns,
 * Spark would plan its own insert command, which does not commit.
 */
public class WriteTarget extends BaseRelation implements InsertableRelation {
  private final SQLContext context;
  private final StructType schema;
  private final Map options;

  public WriteTarget(SQLContext context, StructType schema, Map options) {
    this.context = context;
    this.schema = schema;
    this.options = options;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return schema;
  }

  public void insert(Dataset data, boolean overwrite) {
    Bridge.call("insert", new Object[] {context.sparkSession(), options, data, Boolean.valueOf(overwrite)});
  }

  public String toString() {
    return "deltalog";
  }
}
