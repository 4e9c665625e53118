package io.deltalog.spark;

import java.net.URI;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.QualifiedTableName;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.*;

/**
 * The session catalog, extended by tables named deltalog.`/path`.
 *
 * Each lookup of a deltalog table drops Spark's cached relation, so that the query sees the newest snapshot.
 */
public class DeltalogCatalog extends DelegatingCatalogExtension {
  private static boolean isPath(Identifier name) {
    return name.namespace().length == 1 && isOurs(name.namespace()[0]) && name.name().indexOf('/') >= 0;
  }

  private static boolean isOurs(String namespace) {
    return "deltalog".equalsIgnoreCase(namespace) || DeltaAlias.is(namespace);
  }

  private Table found(Identifier name, String option, String value) throws NoSuchTableException {
    if (isPath(name)) {
      return table(new V1Table(pathDefinition(name)), option, value);
    }
    Table found = super.loadTable(name);
    if (found instanceof V1Table && TableDefinition.isOurs(((V1Table) found).v1Table())) {
      return table((V1Table) found, option, value);
    }
    return option == null || option.equals(TableDefinition.WRITE) ? found : null;
  }

  private static CatalogTable pathDefinition(Identifier name) {
    try {
      URI location = new Path(name.name()).toUri();
      return TableDefinition.ofPath(name.name(), location);
    } catch (Exception e) {
      throw new IllegalArgumentException("deltalog cannot read the path " + name.name() + ": " + e.getMessage(), e);
    }
  }

  private static Table table(V1Table described, String option, String value) {
    CatalogTable wanted;
    try {
      wanted = TableDefinition.at(described.v1Table(), option, value);
    } catch (Exception e) {
      throw new IllegalStateException("deltalog cannot use this version of Spark's catalog: " + e, e);
    }
    TableIdentifier name = wanted.identifier();
    QualifiedTableName key = new QualifiedTableName(
        (String) name.catalog().get(), (String) name.database().get(), name.table());
    ((SparkSession) org.apache.spark.sql.SparkSession.active()).sessionState().catalog().invalidateCachedTable(key);
    return new CatalogEntry(wanted, described);
  }

  public Table loadTable(Identifier name) throws NoSuchTableException {
    return found(name, null, null);
  }

  /** Loads a table for writing; for reading, Spark requests no privileges. */
  public Table loadTable(Identifier name, Set privileges) throws NoSuchTableException {
    return found(name, TableDefinition.WRITE, "true");
  }

  public Table loadTable(Identifier name, String version) throws NoSuchTableException {
    Table found = found(name, "versionAsOf", version);
    return found == null ? super.loadTable(name, version) : found;
  }

  public Table loadTable(Identifier name, long micros) throws NoSuchTableException {
    Table found = found(name, "timestampAsOfMicros", String.valueOf(micros));
    return found == null ? super.loadTable(name, micros) : found;
  }

  public boolean tableExists(Identifier name) {
    if (isPath(name)) {
      Object[] arguments = {org.apache.spark.sql.SparkSession.active(), name.name()};
      return ((Boolean) Bridge.call("exists", arguments)).booleanValue();
    }
    return super.tableExists(name);
  }

  public Table alterTable(Identifier name, TableChange[] changes) throws NoSuchTableException {
    Table found = loadTable(name);
    if (found instanceof V1Table && TableDefinition.isOurs(((V1Table) found).v1Table())) {
      if (changes.length > 0) {
        Bridge.call("refuseStatement", new Object[] {org.apache.spark.sql.SparkSession.active(), changes[0]});
      }
      return found;
    }
    return super.alterTable(name, changes);
  }
}
