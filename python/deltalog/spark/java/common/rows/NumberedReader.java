package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Spark's reader of a file, whose rows are numbered by RowNumbers. Runs in tasks. */
public class NumberedReader extends AbstractFunction1<PartitionedFile, Iterator<?>>
    implements Serializable {
  private final Function1<PartitionedFile, Iterator<?>> reader;
  private final int rowIndex;

  /** Creates the reader; rowIndex is the position of the row numbers. */
  public NumberedReader(Function1<PartitionedFile, Iterator<?>> reader, int rowIndex) {
    this.reader = reader;
    this.rowIndex = rowIndex;
  }

  @Override
  public Iterator<?> apply(PartitionedFile file) {
    Iterator<?> rows = reader.apply(file);
    RowNumbers.install(rows, rowIndex);
    return rows;
  }
}
