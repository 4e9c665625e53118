package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Spark's own reader of a file, followed by what makes its rows those of the table. Runs in the tasks. */
public class ScanReader extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final ScanColumn[] columns;
  private final int rowIndex;

  /** The reader delivers the row's index in the file at the position rowIndex; the scan's rows have the given columns. */
  public ScanReader(Function1 reader, ScanColumn[] columns, int rowIndex) {
    this.reader = reader;
    this.columns = columns;
    this.rowIndex = rowIndex;
  }

  public Object apply(Object file) {
    return new ScanRows((Iterator) reader.apply(file), columns, rowIndex, (PartitionedFile) file);
  }
}
