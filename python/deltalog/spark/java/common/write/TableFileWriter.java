package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;

/**
 * Writes a file of a table with Spark's Parquet writer, and reports it. If there is no row, no file
 * is created.
 */
public class TableFileWriter extends OutputWriter {
  private final OutputWriterFactory parquet;
  private final TableCommitProtocol protocol;
  private final String path;
  private final StructType columns;
  private final TaskAttemptContext context;
  private OutputWriter file;
  private long rows;

  public TableFileWriter(
      OutputWriterFactory parquet,
      TableCommitProtocol protocol,
      String path,
      StructType columns,
      TaskAttemptContext context) {
    this.parquet = parquet;
    this.protocol = protocol;
    this.path = path;
    this.columns = columns;
    this.context = context;
  }

  @Override
  public void write(InternalRow row) {
    if (file == null) {
      protocol.opened(path);
      file = parquet.newInstance(path, columns, context);
    }
    file.write(row);
    rows++;
  }

  @Override
  public void close() {
    if (file == null) {
      return;
    }
    OutputWriter complete = file;
    file = null;
    complete.close();
    try {
      protocol.complete(path, rows, context);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Override
  public String path() {
    return path;
  }
}
