package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.*;
import org.apache.spark.sql.sources.InsertableRelation;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Map;

/**
 * A snapshot as a relation that Spark scans like Parquet files, and that INSERT INTO hands its rows to.
 *
 * dataSchema is the whole table's schema: Spark keeps the position in dataSchema of columns that are in both
 * schemas, so users see the table's own order of columns, and reads the partition columns from the index only.
 *
 * Settings of the session that are meant for plain files do not apply, because the rows of a version are
 * always the same. Spark copies relations to change their options, so the constructor sets these defaults.
 */
public class DeltalogRelation extends HadoopFsRelation implements InsertableRelation {
  /**
   * A missing or damaged file is an error, since its rows would be lost silently. Dates and timestamps are
   * not rebased, except where a file's footer says that a Spark wrote them in the old calendar: that
   * overrides these options.
   */
  private static final String[][] DEFAULTS = new String[][] {
    {"ignoreMissingFiles", "false"},
    {"ignoreCorruptFiles", "false"},
    {"datetimeRebaseMode", "CORRECTED"},
    {"int96RebaseMode", "CORRECTED"}
  };

  public DeltalogRelation(FileIndex index, StructType partitionSchema, StructType schema, FileFormat format, Map options, SparkSession session) {
    super(index, partitionSchema, schema, Option.empty(), format, strict(options), session);
  }

  /** Returns the options with the defaults for those that the user did not give. */
  private static Map strict(Map given) {
    Map options = given;
    for (int i = 0; i < DEFAULTS.length; i++) {
      if (!has(given, DEFAULTS[i][0])) {
        options = (Map) options.updated(DEFAULTS[i][0], DEFAULTS[i][1]);
      }
    }
    return options;
  }

  private static boolean has(Map options, String name) {
    scala.collection.Iterator names = options.keysIterator();
    while (names.hasNext()) {
      if (name.equalsIgnoreCase((String) names.next())) {
        return true;
      }
    }
    return false;
  }

  public void insert(Dataset data, boolean overwrite) {
    Bridge.call("insert", new Object[] {sparkSession(), options(), data, Boolean.valueOf(overwrite)});
  }

  /** Returns a copy that is also a relation of this class: it stays insertable and strict. */
  public HadoopFsRelation copy(FileIndex index, StructType partitionSchema, StructType schema, Option buckets, FileFormat format, Map options, SparkSession session) {
    return new DeltalogRelation(index, partitionSchema, schema, format, options, session);
  }
}
