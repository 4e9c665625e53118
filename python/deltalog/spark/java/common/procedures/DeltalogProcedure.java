package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.types.StructType;

/** A procedure that Python executes, before Spark has bound its arguments. */
public class DeltalogProcedure extends DescribedProcedure implements UnboundProcedure {
  public DeltalogProcedure(Map<String, ?> description, boolean hasResult) {
    super(description, hasResult);
  }

  @Override
  public BoundProcedure bind(StructType arguments) {
    return new BoundDeltalogProcedure(description, hasResult);
  }
}
