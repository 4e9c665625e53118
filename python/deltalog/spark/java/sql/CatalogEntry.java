package io.deltalog.spark;

import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.types.StructType;

/**
 * A table that DESCRIBE and similar statements show as the session catalog describes it. Relations are created
 * from its definition instead.
 */
public class CatalogEntry extends V1Table {
  private final V1Table described;

  public CatalogEntry(CatalogTable definition, V1Table described) {
    super(definition);
    this.described = described;
  }

  public StructType schema() {
    return described.schema();
  }

  public Column[] columns() {
    return described.columns();
  }
}
