package io.deltalog.spark;

import org.apache.spark.sql.*;
import org.apache.spark.sql.sources.*;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** The data source that Spark finds under the name "deltalog". */
public class DeltalogSource
    implements DataSourceRegister, RelationProvider, SchemaRelationProvider, CreatableRelationProvider {
  public String shortName() {
    return "deltalog";
  }

  public BaseRelation createRelation(SQLContext context, Map options) {
    return createRelation(context, options, (StructType) null);
  }

  public BaseRelation createRelation(SQLContext context, Map options, StructType schema) {
    return (BaseRelation) Bridge.call("read", new Object[] {context.sparkSession(), options, schema});
  }

  public BaseRelation createRelation(SQLContext context, SaveMode mode, Map options, Dataset data) {
    return (BaseRelation) Bridge.call("save", new Object[] {context.sparkSession(), options, data, mode.name()});
  }

  /** Returns true: the core refuses the types that no table can hold, and Spark would refuse variants as well. */
  public boolean supportsDataType(DataType type) {
    return true;
  }
}
