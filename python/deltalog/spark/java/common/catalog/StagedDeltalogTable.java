package io.deltalog.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/**
 * A table that a statement defines and may fill. The definition and the rows become one commit, so
 * a failed job changes nothing.
 */
public class StagedDeltalogTable implements StagedTable, SupportsWrite, RowTarget {
  private final Identifier identifier;
  private final String name;
  private final StructType schema;
  private final Transform[] transforms;
  private final String definition;
  private boolean isWritten;

  /** Creates the table; name is used in errors, and definition is the JSON of TableDefinition. */
  public StagedDeltalogTable(
      Identifier identifier,
      String name,
      StructType schema,
      Transform[] transforms,
      String definition) {
    this.identifier = identifier;
    this.name = name;
    this.schema = schema;
    this.transforms = transforms;
    this.definition = definition;
  }

  @Override
  public String name() {
    return name;
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
    return new HashMap<>();
  }

  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> all = new HashSet<>();
    all.add(TableCapability.BATCH_WRITE);
    all.add(TableCapability.TRUNCATE);
    return all;
  }

  @Override
  public boolean acceptsAnySchema() {
    return false;
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    FeatureGroup.WRITE.require();
    return new DeltalogWriteBuilder(this, info.options());
  }

  @Override
  public void insert(
      SparkSession session, Dataset<Row> rows, boolean isOverwrite, Map<String, String> options) {
    Bridge.definitions().createAsSelect(session, definition, rows, TableOptions.json(options));
    isWritten = true;
  }

  @Override
  public void commitStagedChanges() {
    if (!isWritten) {
      Bridge.definitions().create(org.apache.spark.sql.SparkSession.active(), definition);
    }
    EntryColumns.update(org.apache.spark.sql.SparkSession.active(), identifier);
  }

  @Override
  public void abortStagedChanges() {}
}
