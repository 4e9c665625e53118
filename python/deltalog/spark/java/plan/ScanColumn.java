package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** A column of a scan's rows as it stands in what Spark's reader delivers. */
public class ScanColumn implements Serializable {
  protected final int position;
  protected final DataType type;

  public ScanColumn(int position, DataType type) {
    this.position = position;
    this.type = type;
  }

  /** The column of a batch of the file. */
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    return batch.column(position);
  }

  /** The same for rows. */
  public Expression expression(PartitionedFile file) {
    return new BoundReference(position, type, true);
  }
}
