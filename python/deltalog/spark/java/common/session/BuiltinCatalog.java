package io.deltalog.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;

/**
 * Spark's own session catalog as it answers without ours. While another catalog is configured, it
 * does not resolve tables of V2 sources, such as Python data sources.
 */
public class BuiltinCatalog extends scala.runtime.AbstractFunction0 {
  private final TableCatalog catalog;
  private final Identifier name;
  private NoSuchTableException missing;

  private BuiltinCatalog(TableCatalog catalog, Identifier name) {
    this.catalog = catalog;
    this.name = name;
  }

  public static Table load(TableCatalog catalog, Identifier name) throws NoSuchTableException {
    SQLConf builtin = (SQLConf) (Object) SQLConf.get().clone();
    builtin.unsetConf("spark.sql.catalog.spark_catalog");
    BuiltinCatalog loading = new BuiltinCatalog(catalog, name);
    Table found = (Table) SQLConf$.MODULE$.withExistingConf(builtin, loading);
    if (loading.missing != null) {
      throw loading.missing;
    }
    return found;
  }

  @Override
  public Object apply() {
    try {
      return catalog.loadTable(name);
    } catch (NoSuchTableException e) {
      missing = e;
      return null;
    }
  }
}
