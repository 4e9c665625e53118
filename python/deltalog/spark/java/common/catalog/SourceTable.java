package io.deltalog.spark;

import java.util.Collections;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/**
 * The table that the data source returns to Spark. It has no capability to read or write, so load
 * and save use the source's V1 relations, and statements in a session without deltalog's catalog
 * are refused.
 */
public class SourceTable implements Table {
  private final StructType schema;
  private final Transform[] transforms;

  public SourceTable(StructType schema, Transform[] transforms) {
    this.schema = schema;
    this.transforms = transforms;
  }

  @Override
  public String name() {
    return "deltalog";
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public Transform[] partitioning() {
    return transforms;
  }

  @Override
  public Map<String, String> properties() {
    return Collections.emptyMap();
  }

  @Override
  public Set<TableCapability> capabilities() {
    // With this capability, Spark does not compare schemas, which could raise another error first.
    return Collections.singleton(TableCapability.ACCEPT_ANY_SCHEMA);
  }
}
