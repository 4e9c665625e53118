package io.deltalog.spark;

import java.io.Serializable;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Spark's reader of a file, whose rows are numbered by RowNumbers. Runs in tasks. */
public class NumberedReader extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final int rowIndex;

  /** Creates the reader; rowIndex is the position of the row numbers. */
  public NumberedReader(Function1 reader, int rowIndex) {
    this.reader = reader;
    this.rowIndex = rowIndex;
  }

  @Override
  public Object apply(Object file) {
    Iterator rows = (Iterator) reader.apply(file);
    RowNumbers.install(rows, rowIndex);
    return rows;
  }
}
