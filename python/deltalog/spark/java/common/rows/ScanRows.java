package io.deltalog.spark;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of one file or of a part of it, as batches if Spark reads by column, and otherwise as
 * single rows.
 *
 * <ul>
 *   <li>A batch in which all rows are shown is returned without its row indexes, and otherwise
 *       unchanged.
 *   <li>For any other batch, views of its columns show only the selected positions. Nothing is
 *       copied.
 *   <li>Batches and positions are reused for the next batch, as in Spark's own reader.
 * </ul>
 */
public class ScanRows extends AbstractIterator<Object> implements Closeable {
  private final Iterator<?> source;
  private final ScanColumn[] columns;
  private final int rowIndex;
  private final PartitionedFile file;
  private final RowSelection selection;
  private final ColumnVector[] whole;
  private final SelectedVector[] selected;
  private int[] positions = new int[0];
  private UnsafeProjection projection;
  private Object next;

  /** Creates the rows; selection is null if all rows are shown. */
  public ScanRows(
      Iterator<?> source,
      ScanColumn[] columns,
      int rowIndex,
      PartitionedFile file,
      RowSelection selection) {
    this.source = source;
    this.columns = columns;
    this.rowIndex = rowIndex;
    this.file = file;
    this.selection = selection;
    this.whole = new ColumnVector[columns.length];
    this.selected = new SelectedVector[columns.length];
  }

  @Override
  public boolean hasNext() {
    while (next == null && source.hasNext()) {
      Object read = source.next();
      next =
          read instanceof ColumnarBatch columnarBatch
              ? batch(columnarBatch)
              : row((InternalRow) read);
    }
    return next != null;
  }

  @Override
  public Object next() {
    if (!hasNext()) {
      throw new java.util.NoSuchElementException();
    }
    Object result = next;
    next = null;
    return result;
  }

  /** Returns the rows of a batch that are shown, or null if there are none. */
  private ColumnarBatch batch(ColumnarBatch read) {
    for (int i = 0; i < columns.length; i++) {
      whole[i] = columns[i].vector(read, file);
    }
    int rows = read.numRows();
    if (selection == null) {
      return new ColumnarBatch(whole, rows);
    }
    if (positions.length < rows) {
      positions = new int[rows];
      java.util.Arrays.fill(selected, null);
    }
    int shown = selection.select(read.column(rowIndex), rows, positions);
    if (shown == rows) {
      return new ColumnarBatch(whole, rows);
    }
    return shown == 0 ? null : new ColumnarBatch(selected(), shown);
  }

  private ColumnVector[] selected() {
    for (int i = 0; i < whole.length; i++) {
      if (selected[i] == null || !selected[i].shows(whole[i])) {
        selected[i] = new SelectedVector(whole[i], positions);
      } else {
        selected[i].begin();
      }
    }
    return selected;
  }

  private Object row(InternalRow read) {
    if (selection != null && !selection.shows(read.getLong(rowIndex))) {
      return null;
    }
    if (projection == null) {
      List<Expression> expressions = new ArrayList<>();
      for (ScanColumn column : columns) {
        expressions.add(column.expression(file));
      }
      projection = UnsafeProjection.create(Plans.seq(expressions));
    }
    return projection.apply(read);
  }

  @Override
  public void close() throws IOException {
    if (source instanceof Closeable closeable) {
      closeable.close();
    }
  }
}
