package io.deltalog.spark;

import java.net.URI;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTablePartition;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils$;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitioningUtils$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Nil$;

/** Parquet tables of the session catalog, which CONVERT turns into Delta tables. */
public class ParquetEntries {
  private ParquetEntries() {}

  /**
   * Returns the entry with this name. Throws an error if the table is neither a Parquet table nor
   * already a Delta table.
   */
  public static CatalogTable find(SparkSession session, String name) throws Exception {
    List<String> parts =
        Plans.list(session.sessionState().sqlParser().parseMultipartIdentifier(name));
    TableIdentifier identifier = TableNames.identifier(session, parts);
    if (identifier == null) {
      throw Bridge.refusals()
          .directory(name, "it is not in the session catalog, " + TableNames.SESSION_CATALOG);
    }
    SessionCatalog entries = session.sessionState().catalog();
    if (entries.isTempView(identifier)) {
      throw Bridge.refusals().directory(name, "it is a temporary view");
    }
    CatalogTable entry = entries.getTableMetadata(identifier);
    if (!CatalogEntries.isEntry(entry) && !isParquet(entry)) {
      Option<String> provider = entry.provider();
      String reason = provider.isDefined() ? "its provider is " + provider.get() : "it is a view";
      throw Bridge.refusals().directory(name, reason);
    }
    return entry;
  }

  private static boolean isParquet(CatalogTable entry) {
    Option<String> provider = entry.provider();
    Option<String> serde = entry.storage().serde();
    return provider.isDefined()
        && (provider.get().equalsIgnoreCase("parquet")
            || (provider.get().equals("hive")
                && serde.isDefined()
                && serde.get().contains("ParquetHiveSerDe")));
  }

  /**
   * Returns the catalog's information about a table as JSON. The field `elsewhere` lists the
   * partitions that are not in the directory with their name.
   */
  public static String describe(SparkSession session, CatalogTable entry) throws Exception {
    Map<String, Object> known = new HashMap<>();
    known.put("name", entry.identifier().unquotedString());
    known.put("isOurs", Boolean.valueOf(CatalogEntries.isEntry(entry)));
    known.put("isBucketed", Boolean.valueOf(entry.bucketSpec().isDefined()));
    known.put("columns", entry.dataSchema().json());
    known.put("partitionBy", entry.partitionSchema().json());
    known.put("properties", scala.jdk.javaapi.CollectionConverters.asJava(entry.properties()));
    known.put("comment", entry.comment().isDefined() ? entry.comment().get() : null);
    known.put("elsewhere", elsewhere(session, entry));
    known.put(
        "options", scala.jdk.javaapi.CollectionConverters.asJava(entry.storage().properties()));
    known.put("isOfHive", Boolean.valueOf(entry.provider().get().equals("hive")));
    return Json.text(known);
  }

  /**
   * Returns the paths of the files that Spark currently reads for the table, as a JSON list. Paths
   * of files in the table's directory are relative to it.
   */
  public static String files(SparkSession session, CatalogTable entry) throws Exception {
    String name = entry.identifier().quotedString();
    session.catalog().refreshTable(name);
    Configuration settings = session.sessionState().newHadoopConf();
    Path root = qualified(new Path(entry.location()), settings);
    // The analyzed plan is used, because an optimized plan may read the cache instead.
    List<LogicalPlan> leaves =
        Plans.list(session.table(name).queryExecution().analyzed().collectLeaves());
    List<String> paths = new ArrayList<>();
    for (LogicalPlan leaf : leaves) {
      String[] files = ((HadoopFsRelation) ((LogicalRelation) leaf).relation()).inputFiles();
      for (String each : files) {
        Path file = qualified(new Path(new URI(each)), settings);
        String path = below(root, file);
        paths.add(path == null ? file.toString() : path);
      }
    }
    return Json.text(paths);
  }

  /**
   * Returns the paths of the files that are not empty, from a list of paths. Both lists are JSON.
   */
  public static String withRows(SparkSession session, CatalogTable entry, String paths)
      throws Exception {
    Configuration settings = session.sessionState().newHadoopConf();
    Path root = new Path(entry.location());
    List<String> found = new ArrayList<>();
    List<String> all = Json.list(paths);
    for (String each : all) {
      Path file = qualified(new Path(root, new Path(null, null, each)), settings);
      if (file.getFileSystem(settings).getFileStatus(file).getLen() > 0) {
        found.add(each);
      }
    }
    return Json.text(found);
  }

  private static List<String> elsewhere(SparkSession session, CatalogTable entry) throws Exception {
    List<String> elsewhere = new ArrayList<>();
    if (entry.partitionSchema().isEmpty() || !entry.tracksPartitionsInCatalog()) {
      return elsewhere;
    }
    Configuration settings = session.sessionState().newHadoopConf();
    Path root = qualified(new Path(entry.location()), settings);
    List<CatalogTablePartition> all =
        Plans.list(
            session.sessionState().catalog().listPartitions(entry.identifier(), Option.empty()));
    for (CatalogTablePartition partition : all) {
      String named =
          PartitioningUtils$.MODULE$.getPathFragment(partition.spec(), entry.partitionSchema());
      Option<URI> location = partition.storage().locationUri();
      String directory =
          location.isEmpty() ? named : below(root, qualified(new Path(location.get()), settings));
      if (directory == null
          || (!directory.equals(named)
              && !hasValues(directory, partition, entry.partitionSchema()))) {
        elsewhere.add(named + " at " + location.get());
      }
    }
    return elsewhere;
  }

  /**
   * Returns the path of a directory relative to another directory; null if it is not inside the
   * other.
   */
  private static String below(Path root, Path directory) {
    String beginning = root.toString() + "/";
    String path = directory.toString();
    return path.startsWith(beginning) ? path.substring(beginning.length()) : null;
  }

  /**
   * Returns whether the name of a directory contains the values of a partition, such as month=01
   * for 1.
   */
  private static boolean hasValues(
      String directory, CatalogTablePartition partition, StructType columns) {
    String[] names = directory.split("/");
    if (names.length != columns.length()) {
      return false;
    }
    ZoneId zone = ZoneId.of("UTC"); // Any zone will do for the comparison.
    for (int i = 0; i < names.length; i++) {
      StructField column = columns.fields()[i];
      int end = names[i].indexOf('=');
      if (end < 0 || !names[i].substring(0, end).equalsIgnoreCase(column.name())) {
        return false;
      }
      String inName = ExternalCatalogUtils$.MODULE$.unescapePathName(names[i].substring(end + 1));
      String inCatalog = partition.spec().apply(column.name());
      if (!Objects.equals(value(inName, column, zone), value(inCatalog, column, zone))) {
        return false;
      }
    }
    return true;
  }

  private static Object value(String text, StructField column, ZoneId zone) {
    if (text == null || text.equals(ExternalCatalogUtils$.MODULE$.DEFAULT_PARTITION_NAME())) {
      return null;
    }
    try {
      return PartitioningUtils$.MODULE$.castPartValueToDesiredType(column.dataType(), text, zone);
    } catch (RuntimeException e) {
      return text; // The name of the directory is not a value of the column's type.
    }
  }

  private static Path qualified(Path path, Configuration settings) throws Exception {
    return path.getFileSystem(settings).makeQualified(path);
  }

  /**
   * Changes an entry into the entry of a deltalog table, with these options. The new entry has no
   * columns or properties, because these are in the log.
   */
  public static void convert(
      SparkSession session,
      CatalogTable entry,
      scala.collection.immutable.Map<String, String> options)
      throws Exception {
    Map<String, Object> storage = new HashMap<>();
    storage.put("inputFormat", Option.empty());
    storage.put("outputFormat", Option.empty());
    storage.put("serde", Option.empty());
    storage.put("properties", options);
    Map<String, Object> changes = new HashMap<>();
    changes.put("provider", Option.apply("deltalog"));
    changes.put("schema", new StructType());
    changes.put("partitionColumnNames", Nil$.MODULE$);
    changes.put("properties", Map$.MODULE$.empty());
    changes.put("stats", Option.empty());
    changes.put("comment", Option.empty());
    changes.put("tracksPartitionsInCatalog", false);
    changes.put("storage", CaseClass.with(entry.storage(), storage));
    session.sessionState().catalog().alterTable(CaseClass.with(entry, changes));
    session.catalog().refreshTable(entry.identifier().quotedString());
  }
}
