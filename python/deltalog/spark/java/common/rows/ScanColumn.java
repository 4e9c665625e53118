package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A column of a scan's output that is taken unchanged from the output of Spark's reader. */
public class ScanColumn implements Serializable {
  protected final int position;
  protected final DataType type;

  public ScanColumn(int position, DataType type) {
    this.position = position;
    this.type = type;
  }

  /** Returns the column of a batch of the file. */
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    return batch.column(position);
  }

  /** Returns an expression for the column of a row of the file. */
  public Expression expression(PartitionedFile file) {
    return new BoundReference(position, type, true);
  }
}
