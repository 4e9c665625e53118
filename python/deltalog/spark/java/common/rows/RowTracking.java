package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Add;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Computes the ids or commit versions of rows (PROTOCOL, "Reader Requirements for Row Tracking").
 * The values are in a hidden column of the file. Where this column is NULL, the log's value for the
 * file is used; for ids, the row's index in the file is added to it.
 */
public class RowTracking extends ScanColumn {
  private final String fact;
  private final int rowIndex;

  /**
   * Creates the column; rowIndex is the position of the column with row indexes, or -1 if the
   * file's value is the same for all rows.
   */
  public RowTracking(int position, String fact, int rowIndex) {
    super(position, DataTypes.LongType);
    this.fact = fact;
    this.rowIndex = rowIndex;
  }

  @Override
  public ColumnVector vector(ColumnarBatch batch, PartitionedFile file) {
    ColumnVector rowIndexes = rowIndex < 0 ? null : batch.column(rowIndex);
    return new View(batch.column(position), (Long) FileFacts.of(file, fact), rowIndexes);
  }

  @Override
  public Expression expression(PartitionedFile file) {
    Expression start = Literal.create(FileFacts.of(file, fact), type);
    Expression otherwise =
        rowIndex < 0 ? start : new Add(start, new ScanColumn(rowIndex, type).expression(file));
    return new Coalesce(Plans.seq(List.of(super.expression(file), otherwise)));
  }

  /** The column of a batch. */
  public static final class View extends VectorView {
    private final boolean known;
    private final long start;
    private final ColumnVector rowIndexes;

    public View(ColumnVector stored, Long start, ColumnVector rowIndexes) {
      super(stored, DataTypes.LongType);
      this.known = start != null;
      this.start = known ? start.longValue() : 0;
      this.rowIndexes = rowIndexes;
    }

    @Override
    public boolean hasNull() {
      return !known && stored.hasNull();
    }

    @Override
    public int numNulls() {
      return known ? 0 : stored.numNulls();
    }

    @Override
    public boolean isNullAt(int row) {
      return !known && stored.isNullAt(row);
    }

    @Override
    public long getLong(int row) {
      if (!stored.isNullAt(row)) {
        return stored.getLong(row);
      }
      return rowIndexes == null ? start : start + rowIndexes.getLong(row);
    }
  }
}
