package io.deltalog.spark;

import java.util.Locale;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The procedures of deltalog, which Python describes. */
public class Procedures implements ProcedureCatalog {
  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {}

  @Override
  public String name() {
    return "spark_catalog";
  }

  @Override
  public String toString() {
    return name();
  }

  /** Returns whether the name is in the namespace of the procedures. */
  public static boolean isOurs(String[] namespace) {
    return namespace.length == 1 && CatalogEntries.isOurs(namespace[0]);
  }

  /** Returns the name of a procedure with its namespace. */
  public static Identifier identifier(String name) {
    return Identifier.of(new String[] {ProcedurePlans.NAMESPACE}, name);
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier name) {
    return load(name.name(), true);
  }

  /**
   * Returns a procedure. If `hasResult` is false, its rows are not shown. Throws an error if there
   * is no such procedure.
   */
  public UnboundProcedure load(String name, boolean hasResult) {
    String description = Bridge.procedures().describe(name.toLowerCase(Locale.ROOT));
    return new DeltalogProcedure(Json.object(description), hasResult);
  }

  /** Lists all procedures, for SHOW PROCEDURES (Spark 4.1). */
  public Identifier[] listProcedures(String[] namespace) {
    String[] names = Bridge.procedures().names().split(" ");
    Identifier[] found =
        new Identifier[isOurs(namespace) || namespace.length == 0 ? names.length : 0];
    for (int i = 0; i < found.length; i++) {
      found[i] = identifier(names[i]);
    }
    return found;
  }
}
