package io.deltalog.spark;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes rows of one partition to the change data feed, each with its kind of change. (PROTOCOL,
 * "Change Data Files".) The change data file is next to the data file, and is created when the
 * first row is written.
 */
public class ChangeWriter {
  private static final String CHANGE_TYPE = "_change_type";
  private static final InternalRow INSERTED = kind("insert");
  private static final InternalRow DELETED = kind("delete");
  private static final InternalRow BEFORE = kind("update_preimage");
  private static final InternalRow AFTER = kind("update_postimage");

  private final OutputWriter file;
  private final LeadingColumns columns;
  private final JoinedRow joined = new JoinedRow();

  /**
   * Creates the writer for the data file at `path`. `columns` are the file's columns, and the last
   * `tracking` of them track rows; `given` is the number of columns that the rows have.
   */
  public ChangeWriter(
      OutputWriterFactory parquet,
      TableCommitProtocol protocol,
      String path,
      StructType columns,
      int tracking,
      int given,
      TaskAttemptContext context) {
    int width = columns.length() - tracking;
    StructField[] fields = Arrays.copyOf(columns.fields(), width + 1);
    fields[width] = DataTypes.createStructField(CHANGE_TYPE, DataTypes.StringType, true);
    StructType schema = new StructType(fields);
    // Spark's Parquet writer reads its columns from this setting.
    Configuration configuration = new Configuration(context.getConfiguration());
    configuration.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), schema.json());
    TaskAttemptContext own = new TaskAttemptContextImpl(configuration, context.getTaskAttemptID());
    this.file = new TableFileWriter(parquet, protocol, protocol.changeFile(path), schema, own);
    this.columns = new LeadingColumns(columns, width, given);
  }

  private static InternalRow kind(String name) {
    return new GenericInternalRow(new Object[] {UTF8String.fromString(name)});
  }

  /**
   * Writes a row with this operation. For a deleted row, `isFirst` states that the deletion was not
   * recorded before.
   */
  public void write(InternalRow row, int operation, boolean isFirst) {
    InternalRow kind = kindOf(operation, isFirst);
    if (kind != null) {
      file.write(joined.apply(columns.of(row), kind));
    }
  }

  /** Returns the kind of change of a row with this operation; null for an unchanged row. */
  private static InternalRow kindOf(int operation, boolean isFirst) {
    boolean isRemoved = (operation & RowAction.REMOVE) != 0;
    if ((operation & RowAction.COPY) != 0) {
      return null;
    }
    if ((operation & RowAction.WRITE) != 0) {
      return isRemoved ? AFTER : INSERTED;
    }
    if ((operation & RowAction.BEFORE) != 0) {
      return BEFORE;
    }
    return (operation & RowAction.GONE) != 0 || (isRemoved && isFirst) ? DELETED : null;
  }

  public void close() {
    file.close();
  }
}
