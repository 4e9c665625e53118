package io.deltalog.spark;

import java.io.Closeable;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;

/**
 * Spark's reader of a file that reads the columns of a condition first, and the other columns only
 * for the rows that meet the condition. Runs in tasks.
 *
 * <p>This is faster only if whole pages have no such row: skipping single rows costs as much as
 * decoding them. So all rows are read if more than half of the sections of a file contain such a
 * row.
 */
public class SelectingReader extends AbstractFunction1<PartitionedFile, Iterator<?>>
    implements Serializable {
  /**
   * The number of rows that are examined before the reader decides whether to continue selecting.
   */
  private static final int LOOK = 1 << 16;

  /** The binary logarithm of the number of rows in a section, which is about the size of a page. */
  private static final int STRETCH = 12;

  private final Function1<PartitionedFile, Iterator<?>> reader;
  private final Function1<PartitionedFile, Iterator<?>> first;
  private final int rowIndex;
  private final Expression condition;

  /**
   * Creates the reader. The reader `first` reads the columns to which the condition is bound, and
   * at `rowIndex` the position of each row in the file.
   */
  public SelectingReader(
      Function1<PartitionedFile, Iterator<?>> reader,
      Function1<PartitionedFile, Iterator<?>> first,
      int rowIndex,
      Expression condition) {
    this.reader = reader;
    this.first = first;
    this.rowIndex = rowIndex;
    this.condition = condition;
  }

  /**
   * Combines filters into one condition. Leaves out filters that read no columns, or columns that
   * files do not store unchanged, that have subqueries, or that are not deterministic. Returns null
   * if no filter is left.
   */
  public static Expression condition(Seq<Expression> filters, StructType converted) {
    Expression all = null;
    for (Expression filter : Plans.each(filters)) {
      if (filter.deterministic()
          && !SubqueryExpression.hasSubquery(filter)
          && looksAtFiles(filter, converted)) {
        all = all == null ? filter : new And(all, filter);
      }
    }
    return all;
  }

  private static boolean looksAtFiles(Expression filter, StructType converted) {
    Iterator<Attribute> each = filter.references().iterator();
    boolean looks = each.hasNext();
    while (each.hasNext()) {
      Attribute column = each.next();
      looks &=
          converted.getFieldIndex(column.name()).isEmpty()
              && FileSourceMetadataAttribute$.MODULE$
                  .unapply((AttributeReference) column)
                  .isEmpty();
    }
    return looks;
  }

  /**
   * Returns the columns of the condition and the position of the row; null if the files lack one of
   * them.
   */
  public static StructType columns(Expression condition, StructType data) {
    StructType columns = new StructType();
    for (Attribute column : Plans.each(condition.references().toSeq())) {
      Option<Object> at = data.getFieldIndex(column.name());
      if (at.isEmpty()) {
        return null;
      }
      columns = columns.add(data.fields()[(Integer) at.get()]);
    }
    return columns.add(SnapshotFormat.ROW_INDEX, DataTypes.LongType, true);
  }

  /** Returns the condition, bound to the columns that `columns` returns. */
  public static Expression bound(Expression condition) {
    return BindReferences$.MODULE$.bindReference(
        condition, package$.MODULE$.AttributeSeq(condition.references().toSeq()), false);
  }

  @Override
  public Iterator<?> apply(PartitionedFile file) {
    Iterator<?> rows = reader.apply(file);
    SelectedPages pages = SelectedPages.of(rows);
    if (pages != null && pages.count() > LOOK) {
      SelectedRows selected = select(first.apply(file));
      if (selected != null) {
        pages.select(selected);
      }
    }
    return rows;
  }

  /**
   * Returns the rows that meet the condition, or null if they are in too many places. Also returns
   * null if the condition raises an error: the row in question may have been deleted, or another
   * filter may exclude it. If neither is true, the scan raises the error again.
   */
  private SelectedRows select(Iterator<?> batches) {
    RowNumbers.install(batches, rowIndex);
    BasePredicate predicate = Predicate$.MODULE$.create(condition);
    predicate.initialize(0);
    SelectedRows selected = new SelectedRows();
    long stretches = 0;
    long last = -1;
    long seen = 0;
    try {
      while (batches.hasNext()) {
        ColumnarBatch batch = (ColumnarBatch) batches.next();
        ColumnVector numbers = batch.column(rowIndex);
        int count = batch.numRows();
        for (int i = 0; i < count; i++) {
          boolean meets;
          try {
            meets = predicate.eval(batch.getRow(i));
          } catch (Exception e) {
            return null;
          }
          if (meets) {
            long row = numbers.getLong(i);
            selected.add(row);
            stretches += row >> STRETCH == last ? 0 : 1;
            last = row >> STRETCH;
          }
        }
        seen += count;
        if (seen >= LOOK && stretches > seen >> (STRETCH + 1)) {
          return null;
        }
      }
      return selected;
    } finally {
      try {
        ((Closeable) batches).close();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
