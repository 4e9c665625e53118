package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The description of a relation from Python (`read/relation.py`), from which Spark's objects are
 * built.
 */
public class RelationDescription {
  private final Map<String, ?> parts;

  /** Takes the fields of the description. */
  public RelationDescription(Map<String, ?> parts) {
    this.parts = parts;
  }

  /** Returns the relation of a description in JSON, with the options of the read. */
  public static DeltalogRelation relation(
      SparkSession session, String json, scala.collection.immutable.Map<String, String> options) {
    return new RelationDescription(Json.object(json)).relation(session, options);
  }

  public DeltalogRelation relation(
      SparkSession session, scala.collection.immutable.Map<String, String> options) {
    String table = path(session);
    StructType partitionSchema = TableDefaults.checked(schema(parts, "partitionSchema"), table);
    StructType schema = TableDefaults.checked(schema(parts, "schema"), table);
    DeltalogFileIndex index =
        new DeltalogFileIndex(
            table,
            text(parts, "label"),
            text(parts, "identity"),
            partitionSchema,
            text(parts, "planner"),
            is(parts, "isInReach"));
    return new DeltalogRelation(index, partitionSchema, schema, format(table), options, session);
  }

  /**
   * Returns the columns of the relation as the log describes them, including default values that
   * are not allowed.
   */
  public StructType columns(DeltalogRelation relation) {
    StructType known = schema(parts, "schema");
    StructField[] columns = relation.schema().fields().clone();
    for (int i = 0; i < columns.length; i++) {
      columns[i] = known.apply(columns[i].name());
    }
    return new StructType(columns);
  }

  /** Returns the path of the table. */
  public String path(SparkSession session) {
    return Locations.path(session, text(parts, "uri"));
  }

  private FileFormat format(String table) {
    Map<String, ?> format = Unchecked.cast(parts.get("format"));
    if (format == null) {
      return new GuardedFormat(table, schema(parts, "schema"));
    }
    Map<String, ?> names = Unchecked.cast(format.get("names"));
    return new SnapshotFormat(
        names == null
            ? null
            : new PhysicalNames(schema(names, "logical"), schema(names, "physical")),
        is(format, "byId"),
        is(format, "omitsRows"),
        schema(format, "readAs"),
        is(format, "isChangeFeed"),
        text(format, "rowIds"),
        text(format, "rowCommitVersions"),
        is(format, "numbersFiles"),
        table,
        schema(parts, "schema"));
  }

  private static StructType schema(Map<String, ?> parts, String name) {
    return TableDefaults.ofLog((StructType) DataType.fromJson(text(parts, name)));
  }

  private static String text(Map<String, ?> parts, String name) {
    return (String) parts.get(name);
  }

  private static boolean is(Map<String, ?> parts, String name) {
    return (Boolean) parts.get(name);
  }
}
