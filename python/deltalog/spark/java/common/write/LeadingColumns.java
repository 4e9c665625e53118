package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/**
 * Returns only the first columns of rows, because Spark's Parquet writer writes all fields of a
 * row.
 */
public class LeadingColumns {
  private final StructType columns;
  private final int width;
  private final UnsafeRow view;
  private UnsafeProjection projection;

  /**
   * Takes the first `width` columns, whose types are in `columns`, from rows with `given` columns.
   */
  public LeadingColumns(StructType columns, int width, int given) {
    this.columns = columns;
    this.width = width;
    // If both rows have the same number of words for null bits, the leading columns are a shorter
    // row over the same bytes.
    boolean isView =
        UnsafeRow.calculateBitSetWidthInBytes(width)
            == UnsafeRow.calculateBitSetWidthInBytes(given);
    this.view = isView ? new UnsafeRow(width) : null;
  }

  /** Returns the leading columns of a row; the result is valid until the next call. */
  public InternalRow of(InternalRow row) {
    if (view != null && row instanceof UnsafeRow whole) {

      view.pointTo(whole.getBaseObject(), whole.getBaseOffset(), whole.getSizeInBytes());
      return view;
    }
    if (projection == null) {
      List<Expression> fields = new ArrayList<>();
      for (int i = 0; i < width; i++) {
        fields.add(new BoundReference(i, columns.fields()[i].dataType(), true));
      }
      projection = UnsafeProjection.create(Plans.seq(fields));
    }
    return projection.apply(row);
  }
}
