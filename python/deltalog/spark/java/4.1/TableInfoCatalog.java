package io.deltalog.spark;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.catalog.constraints.Check;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;

/**
 * The catalog for Spark releases whose statements define tables by a TableInfo (since 4.1). It adds
 * CHECK constraints.
 */
public abstract class TableInfoCatalog extends BaseCatalog {

  @Override
  public Set<TableCatalogCapability> capabilities() {
    Set<TableCatalogCapability> all = new HashSet<>(super.capabilities());
    all.add(TableCatalogCapability.SUPPORT_TABLE_CONSTRAINT);
    return all;
  }

  @Override
  public Table createTable(Identifier name, TableInfo table)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return createTable(name, table.columns(), table.partitions(), withConstraints(table));
  }

  @Override
  public StagedTable stageCreate(Identifier name, TableInfo table)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return stageCreate(name, table.columns(), table.partitions(), withConstraints(table));
  }

  @Override
  public StagedTable stageReplace(Identifier name, TableInfo table)
      throws NoSuchNamespaceException, NoSuchTableException {
    return stageReplace(name, table.columns(), table.partitions(), withConstraints(table));
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier name, TableInfo table)
      throws NoSuchNamespaceException {
    return stageCreateOrReplace(name, table.columns(), table.partitions(), withConstraints(table));
  }

  /** Returns the properties, including the constraints as the log stores them. */
  private static Map<String, String> withConstraints(TableInfo table) {
    Map<String, String> properties = new HashMap<>(table.properties());
    for (Constraint constraint : table.constraints()) {
      if (!(constraint instanceof Check check)) {
        throw new UnsupportedOperationException(
            "the constraint "
                + constraint.toDDL()
                + " is not supported by deltalog: Delta tables only have CHECK "
                + "constraints");
      }
      properties.put(TableDefinition.CONSTRAINT + check.name(), check.predicateSql());
    }
    return properties;
  }
}
