package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.CheckOverflow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A decimal column that was widened from bytes or shorts. Spark's reader converts 32-bit integers
 * of a file only to decimals with at least ten digits before the point, so the column is read as
 * such a decimal.
 */
public class NarrowDecimal extends ScanColumn {
  private final DecimalType read;

  public NarrowDecimal(int position, DecimalType read, DecimalType type) {
    super(position, type);
    this.read = read;
  }

  @Override
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    return new View(batch.column(position), read, (DecimalType) type);
  }

  @Override
  public Expression expression(PartitionedFile file) {
    return new CheckOverflow(
        new ScanColumn(position, read).expression(file), (DecimalType) type, false);
  }

  /** The values in the narrower type. Throws an error for a value that does not fit. */
  public static final class View extends VectorView {
    private final DecimalType read;

    public View(ColumnVector stored, DecimalType read, DecimalType type) {
      super(stored, type);
      this.read = read;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (stored.isNullAt(row)) {
        return null;
      }
      Decimal value = stored.getDecimal(row, read.precision(), read.scale());
      if (!value.changePrecision(precision, scale)) {
        throw new ArithmeticException(
            value + " does not fit in a decimal(" + precision + "," + scale + ")");
      }
      return value;
    }
  }
}
