package io.deltalog.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.*;

/** The catalog of Spark releases whose catalogs carry out CREATE TABLE LIKE (from 4.2). */
public final class DeltalogCatalog extends TableInfoCatalog {
  /**
   * Creates a table with the columns, the partitioning and the properties of another one, and
   * without rows.
   */
  @Override
  public Table createTableLike(Identifier name, TableInfo wanted, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    Map properties = new HashMap(wanted.properties());
    boolean isLikeOurs = source instanceof DeltalogTable;
    if (isLikeOurs) {
      properties.putIfAbsent(TableCatalog.PROP_PROVIDER, ((DeltalogTable) source).provider());
    }
    if (!CatalogEntries.isOurs((String) properties.get(TableCatalog.PROP_PROVIDER))) {
      return super.createTableLike(name, wanted, source);
    }
    Map all = isLikeOurs ? ((DeltalogTable) source).definition() : new HashMap();
    all.putAll(properties);
    Column[] columns = isLikeOurs ? ((DeltalogTable) source).definedColumns() : source.columns();
    return createTable(name, columns, source.partitioning(), all);
  }
}
