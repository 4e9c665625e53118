package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.AliasIdentifier;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;

/**
 * A table that a Python program has found by its name. Conditions may refer to its columns by that
 * name, as in SQL: `t.id`, `db.t.id` and `spark_catalog.db.t.id`.
 */
public final class NamedRows {
  private NamedRows() {}

  /**
   * Returns the rows of a table under its full name; the given name may lack the catalog and the
   * database, which are then the current ones.
   */
  public static Dataset<Row> named(SparkSession session, Dataset<Row> rows, String name)
      throws ParseException {
    List<String> parts =
        Plans.list(session.sessionState().sqlParser().parseMultipartIdentifier(name));
    List<String> qualifier = new ArrayList<>(parts.subList(0, parts.size() - 1));
    CatalogManager manager = session.sessionState().catalogManager();
    if (qualifier.isEmpty()) {
      qualifier.addAll(List.of(manager.currentNamespace()));
    }
    if (qualifier.size() == 1) {
      qualifier.add(0, manager.currentCatalog().name());
    }
    AliasIdentifier alias = new AliasIdentifier(parts.get(parts.size() - 1), Plans.seq(qualifier));
    return Dataset.ofRows(session, new SubqueryAlias(alias, rows.logicalPlan()));
  }
}
