package io.deltalog.spark;

import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** What the planner says of a file beside its place and its partition values; it travels with the file to the task that reads it. */
public class FileFacts {
  /** byte[]: the rows that are not shown. */
  public static final String WITHOUT_ROWS = "deltalog.without_rows";
  /** byte[]: the only rows that are shown. */
  public static final String ONLY_ROWS = "deltalog.only_rows";

  /** String: what a change data feed says of all rows. */
  public static final String CHANGE_TYPE = "deltalog.change_type";

  /** Long, by the names that Spark shows them under in _metadata. */
  public static final String BASE_ROW_ID = "base_row_id";
  public static final String DEFAULT_ROW_COMMIT_VERSION = "default_row_commit_version";

  public static Object of(PartitionedFile file, String fact) {
    scala.Option found = file.otherConstantMetadataColumnValues().get(fact);
    return found.isDefined() ? found.get() : null;
  }

  public static String changeType(PartitionedFile file) {
    return (String) of(file, CHANGE_TYPE);
  }

  /** The selection of the file's rows, or null where all of them are shown. */
  public static RowSelection selection(PartitionedFile file) {
    byte[] without = (byte[]) of(file, WITHOUT_ROWS);
    if (without != null) {
      return new RowSelection(without, false);
    }
    byte[] only = (byte[]) of(file, ONLY_ROWS);
    return only == null ? null : new RowSelection(only, true);
  }
}
