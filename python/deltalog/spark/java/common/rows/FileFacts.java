package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * Information about a file from the planner, in addition to its path and partition values. It is
 * sent with the file to the task that reads it.
 */
public class FileFacts {
  /** A VectorPlace: the vector of the rows that the scan skips. */
  public static final String WITHOUT_ROWS = "deltalog.without_rows";

  /** A VectorPlace: the vector of the only rows that the scan returns. */
  public static final String ONLY_ROWS = "deltalog.only_rows";

  /** A String: the change type of all rows in a change data feed. */
  public static final String CHANGE_TYPE = "deltalog.change_type";

  /** Longs, under the names that Spark shows in _metadata. */
  public static final String BASE_ROW_ID = "base_row_id";

  public static final String DEFAULT_ROW_COMMIT_VERSION = "default_row_commit_version";

  /** An Integer: the number of the file in the plan of a statement that changes rows. */
  public static final String NUMBER = "deltalog_file";

  public static Object of(PartitionedFile file, String fact) {
    scala.Option<Object> found = file.otherConstantMetadataColumnValues().get(fact);
    return found.isDefined() ? found.get() : null;
  }

  public static String changeType(PartitionedFile file) {
    return (String) of(file, CHANGE_TYPE);
  }

  /**
   * Returns the selection of rows in a file of the table with this root; null if the scan returns
   * all rows.
   */
  public static RowSelection selection(
      PartitionedFile file, String root, Configuration configuration) {
    VectorPlace only = (VectorPlace) of(file, ONLY_ROWS);
    VectorPlace without = (VectorPlace) of(file, WITHOUT_ROWS);
    if (only == null && without == null) {
      return null;
    }
    Path path = file.toPath();
    RowSelection selection =
        new RowSelection(
            only == null ? null : only.read(root, path, configuration),
            without == null ? null : without.read(root, path, configuration));
    // If a file is read in several parts, only the first part is checked.
    if (file.start() == 0) {
      check(selection, path, configuration);
    }
    return selection;
  }

  private static void check(RowSelection selection, Path path, Configuration configuration) {
    long rows;
    try {
      rows = rows(path, configuration);
    } catch (IOException e) {
      String message = "the number of rows of the data file cannot be read: " + e.getMessage();
      throw new FileFault(FileFault.UNAVAILABLE, message, null, path, e);
    }
    if (selection.last() >= rows) {
      String message =
          "the deletion vector names row "
              + selection.last()
              + " of a data file that has "
              + rows
              + " rows";
      String hint = "the vector belongs to another file, or one of the two was replaced";
      throw new FileFault(FileFault.CORRUPT, message, hint, path, null);
    }
  }

  private static long rows(Path path, Configuration configuration) throws IOException {
    HadoopInputFile file = HadoopInputFile.fromPath(path, configuration);
    try (ParquetFileReader reader =
        ParquetFileReader.open(file, HadoopReadOptions.builder(configuration, path).build())) {
      return reader.getRecordCount();
    }
  }
}
