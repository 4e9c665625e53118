package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Spark's own reader of a file, followed by the steps that turn its rows into the table's. Runs in tasks. */
public class ScanReader extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final ScanColumn[] columns;
  private final int rowIndex;
  private final Broadcast configuration;

  /**
   * The reader delivers the row's index in the file at the position rowIndex. The scan's rows have the given
   * columns. Deletion vectors are read with the configuration.
   */
  public ScanReader(Function1 reader, ScanColumn[] columns, int rowIndex, Broadcast configuration) {
    this.reader = reader;
    this.columns = columns;
    this.rowIndex = rowIndex;
    this.configuration = configuration;
  }

  public Object apply(Object object) {
    PartitionedFile file = (PartitionedFile) object;
    Iterator rows = (Iterator) reader.apply(file);
    RowNumbers.install(rows, rowIndex);
    RowSelection selection = FileFacts.selection(file, ((SerializableConfiguration) configuration.value()).value());
    return new ScanRows(rows, columns, rowIndex, file, selection);
  }
}
