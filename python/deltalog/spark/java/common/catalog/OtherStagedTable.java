package io.deltalog.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/** A new table of another data source, which CREATE TABLE AS SELECT fills. It is dropped if that fails. */
public class OtherStagedTable implements StagedTable, SupportsWrite {
  private final TableCatalog catalog;
  private final Identifier name;
  private final Table created;

  public OtherStagedTable(TableCatalog catalog, Identifier name, Table created) {
    this.catalog = catalog;
    this.name = name;
    this.created = created;
  }

  public String name() {
    return created.name();
  }

  public StructType schema() {
    return created.schema();
  }

  public Column[] columns() {
    return created.columns();
  }

  public Transform[] partitioning() {
    return created.partitioning();
  }

  public Map properties() {
    return created.properties();
  }

  public Set capabilities() {
    return created.capabilities();
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return ((SupportsWrite) created).newWriteBuilder(info);
  }

  public void commitStagedChanges() {}

  public void abortStagedChanges() {
    catalog.dropTable(name);
  }
}
