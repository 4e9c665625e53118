package io.deltalog.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/** Resolves names and paths of tables, also in the arguments of procedures. */
public class TableNames {
  public static final String SESSION_CATALOG = "spark_catalog";
  // A name can contain the URI of a table, in backticks.
  private static final Pattern PATH = Pattern.compile("/|\\.\\.?/|[A-Za-z][A-Za-z0-9+.-]*:/");

  private TableNames() {}

  /**
   * Returns the options with which a table is opened. The argument is a path, which may be
   * relative, or deltalog.`/path`, or a name in the session catalog. Throws an error for anything
   * that is not a Delta table.
   */
  public static Map<String, String> options(SparkSession session, String table) {
    if (PATH.matcher(table).lookingAt()) {
      return path(table);
    }
    try {
      return named(session, table);
    } catch (ParseException e) {
      if (table.indexOf('/') >= 0) {
        return path(table); // This is a relative path, and cannot be a name.
      }
      Platform.throwException(e);
      return null;
    } catch (Exception e) {
      Platform.throwException(
          e); // Spark's errors are checked exceptions, but its interface of procedures has none.
      return null;
    }
  }

  /**
   * Returns the options, including the path, of a directory or of a Parquet table in the session
   * catalog.
   */
  public static Map<String, String> directory(SparkSession session, String directory) {
    String path = pathOf(session, directory);
    if (path != null) {
      return path(path);
    }
    try {
      return CatalogEntries.options(ParquetEntries.find(session, directory));
    } catch (Exception e) {
      Platform.throwException(e);
      return null;
    }
  }

  /**
   * Returns the path if the argument is a path, which may be relative, or parquet.`/path`. Returns
   * null if it is a name in the catalog.
   */
  public static String pathOf(SparkSession session, String directory) {
    if (PATH.matcher(directory).lookingAt()) {
      return directory;
    }
    List<String> parts = null;
    try {
      parts = Plans.list(session.sessionState().sqlParser().parseMultipartIdentifier(directory));
    } catch (ParseException e) {
      if (directory.indexOf('/') >= 0) {
        return directory;
      }
      Platform.throwException(e);
    }
    String format = parts.size() == 2 ? parts.get(0) : "";
    String last = parts.get(parts.size() - 1);
    if (format.equalsIgnoreCase("parquet") || CatalogEntries.isOurs(format)) {
      return last;
    }
    if (last.indexOf('/') >= 0) {
      throw Bridge.refusals().directory(directory, "its format is not Parquet");
    }
    return null;
  }

  /**
   * Returns the name with these parts; null if it is in a catalog other than the session catalog.
   */
  public static TableIdentifier identifier(SparkSession session, List<String> parts) {
    int size = parts.size();
    String current = session.sessionState().catalogManager().currentCatalog().name();
    String catalog = size == 3 ? parts.get(0) : current;
    if (size > 3 || !SESSION_CATALOG.equalsIgnoreCase(catalog)) {
      return null;
    }
    String database = size > 1 ? parts.get(size - 2) : null;
    return new TableIdentifier(parts.get(size - 1), Option.apply(database));
  }

  private static Map<String, String> named(SparkSession session, String table) throws Exception {
    List<String> parts =
        Plans.list(session.sessionState().sqlParser().parseMultipartIdentifier(table));
    int size = parts.size();
    String name = parts.get(size - 1);
    String parent = size > 1 ? parts.get(size - 2) : null;
    if (size == 2 && CatalogEntries.isOurs(parent) && name.indexOf('/') >= 0) {
      return path(name);
    }
    TableIdentifier identifier = identifier(session, parts);
    if (identifier == null) {
      throw Bridge.refusals().table(table, "it is not in the session catalog, " + SESSION_CATALOG);
    }
    SessionCatalog entries = session.sessionState().catalog();
    if (entries.isTempView(identifier)) {
      throw Bridge.refusals().table(table, "it is a temporary view");
    }
    CatalogTable entry = entries.getTableMetadata(identifier);
    if (!CatalogEntries.isEntry(entry)) {
      Option<String> provider = entry.provider();
      String reason = provider.isDefined() ? "its provider is " + provider.get() : "it is a view";
      throw Bridge.refusals().table(table, reason);
    }
    return CatalogEntries.options(entry);
  }

  private static Map<String, String> path(String path) {
    Map<String, String> options = new HashMap<>();
    options.put("path", path);
    return options;
  }
}
