package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;

/** The first columns of rows. Spark's Parquet writer writes all fields of a row. */
public class LeadingColumns {
  private final StructType columns;
  private final int width;
  private final UnsafeRow view;
  private UnsafeProjection projection;

  /**
   * Takes the first `width` columns, which have the types in `columns`, from rows of so many
   * columns.
   */
  public LeadingColumns(StructType columns, int width, int given) {
    this.columns = columns;
    this.width = width;
    // A shorter row over the same bytes has the leading columns alone, if both have as many words
    // of null bits.
    boolean isView =
        UnsafeRow.calculateBitSetWidthInBytes(width)
            == UnsafeRow.calculateBitSetWidthInBytes(given);
    this.view = isView ? new UnsafeRow(width) : null;
  }

  /** Returns them, valid until the next call. */
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
