package io.deltalog.spark;

import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/**
 * Creates the writers of a task, which share the task's commit protocol. The rows of a statement
 * have markers.
 */
public class TableFileWriters extends OutputWriterFactory {
  private final OutputWriterFactory parquet;
  private final TableCommitProtocol protocol;
  private final StructType columns;
  private final boolean records;
  private final int tracking;

  /**
   * Creates the writers; columns are the columns of files, without marker columns. If changes are
   * recorded, they are written to change data files without the last columns, which track rows.
   */
  public TableFileWriters(
      OutputWriterFactory parquet,
      TableCommitProtocol protocol,
      StructType columns,
      boolean records,
      int tracking) {
    this.parquet = parquet;
    this.protocol = protocol;
    this.columns = columns;
    this.records = records;
    this.tracking = tracking;
  }

  @Override
  public String getFileExtension(TaskAttemptContext context) {
    return parquet.getFileExtension(context);
  }

  @Override
  public OutputWriter newInstance(String path, StructType given, TaskAttemptContext context) {
    OutputWriter file = new TableFileWriter(parquet, protocol, path, columns, context);
    if (given.length() == columns.length()) {
      return file;
    }
    ChangeWriter changes = null;
    if (records) {
      changes =
          new ChangeWriter(parquet, protocol, path, columns, tracking, given.length(), context);
    }
    return protocol.marked(file, changes, columns, given.length());
  }
}
