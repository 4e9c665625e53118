package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * A snapshot as a relation that Spark scans like Parquet files, and that is the target of INSERT
 * INTO.
 *
 * <p>dataSchema is the schema of the whole table. For columns in both schemas, Spark keeps the
 * position in dataSchema, so users see the table's order of columns. Spark reads partition columns
 * only from the index.
 *
 * <p>Session settings for plain files do not apply, because the rows of a version never change.
 * Default options override these settings. The constructor sets them, because Spark copies
 * relations to change their options.
 */
public class DeltalogRelation extends HadoopFsRelation implements InsertableRelation {
  /**
   * Options that override the session's settings. A missing or damaged file is an error. Otherwise,
   * its rows would be lost silently. Dates and timestamps are not rebased, except in files whose
   * footer states that Spark wrote them in the Julian calendar. The footer overrides these options.
   */
  private static final String[][] DEFAULTS =
      new String[][] {
        {"ignoreMissingFiles", "false"},
        {"ignoreCorruptFiles", "false"},
        {"datetimeRebaseMode", "CORRECTED"},
        {"int96RebaseMode", "CORRECTED"}
      };

  /**
   * The number of options at the start of DEFAULTS that decide whether a scan skips files that it
   * cannot read.
   */
  private static final int OF_FILES = 2;

  private long size = -1;

  public DeltalogRelation(
      FileIndex index,
      StructType partitionSchema,
      StructType schema,
      FileFormat format,
      Map<String, String> options,
      SparkSession session) {
    super(index, partitionSchema, schema, Option.empty(), format, strict(options), session);
  }

  /** Returns the key of the planner that lists the files. */
  public String planner() {
    return ((DeltalogFileIndex) location()).planner();
  }

  /** Returns this relation with the size of the files that a query reads. */
  public DeltalogRelation withSize(long bytes) {
    DeltalogRelation sized =
        new DeltalogRelation(
            location(), partitionSchema(), dataSchema(), fileFormat(), options(), sparkSession());
    sized.size = bytes;
    return sized;
  }

  /** Returns whether the size covers only the files that may match the filters of a query. */
  public boolean isPruned() {
    return size >= 0;
  }

  @Override
  public long sizeInBytes() {
    return size < 0 ? super.sizeInBytes() : size;
  }

  @Override
  public boolean equals(Object other) {
    return super.equals(other)
        && (!(other instanceof DeltalogRelation deltalogRelation) || size == deltalogRelation.size);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /** Returns the options, with the defaults for those that are not given. */
  private static Map<String, String> strict(Map<String, String> given) {
    Map<String, String> options = given;
    for (String[] setting : DEFAULTS) {
      if (!has(given, setting[0])) {
        options = Unchecked.cast(options.updated(setting[0], setting[1]));
      }
    }
    return options;
  }

  /**
   * Returns the options without the ones that let a scan skip files that cannot be read: a
   * statement would treat the rows of these files as missing.
   */
  static Map<String, String> withAllFiles(Map<String, String> given) {
    Map<String, String> options = given;
    for (int i = 0; i < OF_FILES; i++) {
      for (String name = name(options, DEFAULTS[i][0]);
          name != null;
          name = name(options, DEFAULTS[i][0])) {
        options = options.removed(name);
      }
    }
    return options;
  }

  private static boolean has(Map<String, String> options, String name) {
    return name(options, name) != null;
  }

  /** Returns the name of an option as the user spelled it, or null. */
  private static String name(Map<String, String> options, String name) {
    scala.collection.Iterator<String> names = options.keysIterator();
    while (names.hasNext()) {
      String given = names.next();
      if (name.equalsIgnoreCase(given)) {
        return given;
      }
    }
    return null;
  }

  @Override
  public void insert(Dataset<Row> data, boolean overwrite) {
    Bridge.writes().insert(sparkSession(), TableOptions.json(options()), data, overwrite);
  }

  /**
   * Returns a copy of the same class, so that INSERT INTO works with it and the defaults still
   * apply.
   */
  @Override
  public HadoopFsRelation copy(
      FileIndex index,
      StructType partitionSchema,
      StructType schema,
      Option<BucketSpec> buckets,
      FileFormat format,
      Map<String, String> options,
      SparkSession session) {
    return new DeltalogRelation(index, partitionSchema, schema, format, options, session);
  }
}
