package io.deltalog.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/**
 * A new table of another data source, which CREATE TABLE AS SELECT fills. It is dropped if that
 * fails.
 */
public class OtherStagedTable implements StagedTable, SupportsWrite {
  private final TableCatalog catalog;
  private final Identifier name;
  private final Table created;

  public OtherStagedTable(TableCatalog catalog, Identifier name, Table created) {
    this.catalog = catalog;
    this.name = name;
    this.created = created;
  }

  @Override
  public String name() {
    return created.name();
  }

  @Override
  public StructType schema() {
    return created.schema();
  }

  @Override
  public Column[] columns() {
    return created.columns();
  }

  @Override
  public Transform[] partitioning() {
    return created.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return created.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return created.capabilities();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return ((SupportsWrite) created).newWriteBuilder(info);
  }

  @Override
  public void commitStagedChanges() {}

  @Override
  public void abortStagedChanges() {
    catalog.dropTable(name);
  }
}
