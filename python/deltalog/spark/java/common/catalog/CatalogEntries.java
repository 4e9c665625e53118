package io.deltalog.spark;

import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.errors.QueryCompilationErrors$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/**
 * The entries of deltalog tables in the session catalog. An entry has a name, a provider, a
 * location and options, and shows the columns (EntryColumns). Everything else is in the log.
 */
public class CatalogEntries {
  private static final String CATALOG = "spark_catalog";
  // The same pattern as in Spark's SessionCatalog, which checks a name only when it creates the
  // entry.
  private static final Pattern NAME = Pattern.compile("\\w+");

  /** Returns whether the provider of a table, or the namespace of a path, is this source. */
  public static boolean isOurs(String provider) {
    return "deltalog".equalsIgnoreCase(provider)
        || DeltalogSource.class.getName().equals(provider)
        || DeltaName.is(provider);
  }

  /** Returns whether a name is the path of a deltalog table, deltalog.`/path`. */
  public static boolean isPath(Identifier name) {
    return name.namespace().length == 1
        && isOurs(name.namespace()[0])
        && name.name().indexOf('/') >= 0;
  }

  public static boolean isEntry(CatalogTable table) {
    Option<String> provider = table.provider();
    return provider.isDefined() && isOurs(provider.get());
  }

  /**
   * Returns the entry of a deltalog table, or null if the name belongs to something else or to
   * nothing.
   */
  public static CatalogTable find(Identifier name) {
    if (name.namespace().length != 1) {
      return null;
    }
    SessionCatalog catalog =
        ((SparkSession) org.apache.spark.sql.SparkSession.active()).sessionState().catalog();
    try {
      CatalogTable found =
          catalog.getTableMetadata(
              new TableIdentifier(
                  name.name(), Option.apply(name.namespace()[0]), Option.apply(CATALOG)));
      return isEntry(found) ? found : null;
    } catch (NoSuchNamespaceException | NoSuchTableException e) {
      return null;
    }
  }

  /**
   * Returns the options with which the table of an entry is opened, in a map that ignores the case
   * of their names.
   */
  public static Map<String, String> options(CatalogTable entry) {
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.putAll(scala.jdk.javaapi.CollectionConverters.asJava(entry.storage().properties()));
    Option<URI> location = entry.storage().locationUri();
    if (location.isDefined()) {
      options.put("path", CatalogUtils.URIToString(location.get()));
    }
    return options;
  }

  /**
   * Returns the options with which a deltalog table is opened, or null if the name belongs to
   * something else.
   */
  public static Map<String, String> options(Identifier name) {
    return options(name, isPath(name) ? null : find(name));
  }

  /** Returns the options for a table. The entry is null for a table that is named by its path. */
  public static Map<String, String> options(Identifier name, CatalogTable entry) {
    if (!isPath(name)) {
      return entry == null ? null : options(entry);
    }
    Map<String, String> options = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    options.put("path", name.name());
    return options;
  }

  /** Returns the name in the form in which statements use it. */
  public static String label(Identifier name) {
    String database = name.namespace()[0] + ".";
    return isPath(name)
        ? database + "`" + name.name() + "`"
        : CATALOG + "." + database + name.name();
  }

  /** Returns the table property that tells Spark whether the table is managed or external. */
  public static String kind(CatalogTable entry) {
    return CatalogTableType.MANAGED().equals(entry.tableType())
        ? TableCatalog.PROP_IS_MANAGED_LOCATION
        : TableCatalog.PROP_EXTERNAL;
  }

  /** Throws Spark's error for a name that its catalog refuses, before anything is written. */
  public static void checkName(String name) {
    if (!NAME.matcher(name).matches()) {
      Platform.throwException(
          QueryCompilationErrors$.MODULE$.invalidNameForTableOrDatabaseError(name));
    }
  }

  /**
   * Changes the location of an entry. The entry becomes external, so that DROP TABLE keeps the
   * files there, which may belong to another entry. Declares Exception, because metastores also
   * throw checked exceptions.
   */
  static void move(CatalogTable entry, URI location) throws Exception {
    Map<String, Object> storage = new HashMap<>();
    storage.put("locationUri", Option.apply(location));
    Map<String, Object> moved = new HashMap<>();
    moved.put("storage", CaseClass.with(entry.storage(), storage));
    moved.put("tableType", CatalogTableType.EXTERNAL());
    ((SparkSession) org.apache.spark.sql.SparkSession.active())
        .sessionState()
        .catalog()
        .alterTable(CaseClass.with(entry, moved));
  }

  /**
   * Returns an entry that describes a deltalog table, even if the table is named by its path and
   * has no entry in the catalog.
   *
   * @param options the options with which the table was opened, among them its path
   */
  static CatalogTable shown(
      Identifier name, String provider, Map<String, String> options, StructType columns) {
    Map<String, String> others = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    others.putAll(options);
    URI location = CatalogUtils.stringToURI(others.remove("path"));
    TableIdentifier identifier =
        new TableIdentifier(name.name(), Option.apply(name.namespace()[0]), Option.apply(CATALOG));
    try {
      return create(identifier, false, location, provider, TableOptions.scala(others), columns);
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's catalog entries: " + e, e);
    }
  }

  /** Returns a new entry. */
  public static CatalogTable create(
      TableIdentifier name,
      boolean isManaged,
      URI location,
      String provider,
      scala.collection.immutable.Map<String, String> options,
      StructType columns)
      throws Exception {
    Map<String, Object> storage = new HashMap<>();
    storage.put("locationUri", Option.apply(location));
    storage.put("properties", options);
    CatalogTableType type = isManaged ? CatalogTableType.MANAGED() : CatalogTableType.EXTERNAL();
    Object format = CaseClass.with(CatalogStorageFormat.empty(), storage);
    Object[] first = {name, type, format, columns, Option.apply(provider)};
    return CaseClass.create(CatalogTable.class, first);
  }
}
