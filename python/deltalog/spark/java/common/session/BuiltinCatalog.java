package io.deltalog.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.unsafe.Platform;

/**
 * Spark's own session catalog, without deltalog's. While another catalog is configured, it does not
 * resolve tables of V2 sources, such as Python data sources.
 */
public class BuiltinCatalog {
  private BuiltinCatalog() {}

  public static Table load(TableCatalog catalog, Identifier name) throws NoSuchTableException {
    SQLConf builtin = (SQLConf) (Object) SQLConf.get().clone();
    builtin.unsetConf("spark.sql.catalog.spark_catalog");
    return SQLConf$.MODULE$.withExistingConf(builtin, () -> loaded(catalog, name));
  }

  /**
   * Throws the exception unchanged: Scala methods do not declare checked exceptions, but callers
   * expect this one.
   */
  private static Table loaded(TableCatalog catalog, Identifier name) {
    try {
      return catalog.loadTable(name);
    } catch (NoSuchTableException e) {
      Platform.throwException(e);
      throw new AssertionError(e);
    }
  }
}
