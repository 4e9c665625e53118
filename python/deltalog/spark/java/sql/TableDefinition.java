package io.deltalog.spark;

import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * The session catalog's definition of a table in the form that the analyzer uses: its location and the
 * requested version. Everything else comes from the log.
 */
public class TableDefinition {
  /** The option that requests a WriteTarget. */
  public static final String WRITE = "deltalog.write";

  public static boolean isOurs(CatalogTable table) {
    Option provider = table.provider();
    return provider.isDefined() && isOurs((String) provider.get());
  }

  private static boolean isOurs(String provider) {
    return "deltalog".equalsIgnoreCase(provider) || DeltalogSource.class.getName().equals(provider)
        || DeltaAlias.is(provider);
  }

  /** Returns the definition of deltalog.`/path`. */
  public static CatalogTable ofPath(String path, URI location) throws Exception {
    Map storage = new HashMap();
    storage.put("locationUri", Option.apply(location));
    Map properties = new HashMap();
    properties.put("path", path);
    storage.put("properties", scalaMap(properties));
    Object format = CaseClass.with(CatalogStorageFormat.empty(), storage);
    TableIdentifier name = new TableIdentifier(path, Option.apply("deltalog"), Option.apply("spark_catalog"));
    Object[] first = {name, CatalogTableType.EXTERNAL(), format, new StructType(), Option.apply("deltalog")};
    return (CatalogTable) CaseClass.create(CatalogTable.class, first);
  }

  /**
   * Returns the definition with an empty schema, so that the log's schema is used. If option is not null, it
   * is added with the value.
   */
  public static CatalogTable at(CatalogTable table, String option, String value) throws Exception {
    Map changes = new HashMap();
    changes.put("schema", new StructType());
    changes.put("partitionColumnNames", scala.collection.immutable.Nil$.MODULE$);
    if (option != null) {
      Map properties = new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(table.storage().properties()));
      properties.put(option, value);
      Map storage = new HashMap();
      storage.put("properties", scalaMap(properties));
      changes.put("storage", CaseClass.with(table.storage(), storage));
      // Spark caches relations by name. A different catalog name distinguishes versions and the write target,
      // even within one query. Users see it only in error messages, so it resembles the real one.
      TableIdentifier name = table.identifier();
      String catalog = option.equals(WRITE) ? "SPARK_CATALOG" : "spark_catalog@" + option + "=" + value;
      changes.put("identifier", new TableIdentifier(name.table(), name.database(), Option.apply(catalog)));
    }
    return (CatalogTable) CaseClass.with(table, changes);
  }

  private static scala.collection.immutable.Map scalaMap(Map map) {
    return scala.collection.immutable.Map$.MODULE$.from(scala.jdk.javaapi.CollectionConverters.asScala(map));
  }
}
