package io.deltalog.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.*;

/** The catalog for Spark releases that leave CREATE TABLE LIKE to catalogs (since 4.2). */
public final class DeltalogCatalog extends TableInfoCatalog {
  /**
   * Creates an empty table with the columns and the partitioning of another table. If the other
   * table is a deltalog table, its properties are copied too.
   */
  @Override
  public Table createTableLike(Identifier name, TableInfo wanted, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Map<String, String> properties = new HashMap<>(wanted.properties());
    DeltalogTable ours = source instanceof DeltalogTable table ? table : null;
    if (ours != null) {
      properties.putIfAbsent(TableCatalog.PROP_PROVIDER, ours.provider());
    }
    if (!CatalogEntries.isOurs(properties.get(TableCatalog.PROP_PROVIDER))) {
      return super.createTableLike(name, wanted, source);
    }
    Map<String, String> all = ours == null ? new HashMap<>() : ours.definition();
    all.putAll(properties);
    Column[] columns = ours == null ? source.columns() : ours.definedColumns();
    return createTable(name, columns, source.partitioning(), all);
  }
}
