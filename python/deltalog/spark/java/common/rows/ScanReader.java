package io.deltalog.spark;

import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.util.SerializableConfiguration;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Spark's reader of a file, followed by the steps that convert its rows to rows of the table. Runs
 * in tasks.
 */
public class ScanReader extends AbstractFunction1<PartitionedFile, Iterator<?>>
    implements Serializable {
  private final Function1<PartitionedFile, Iterator<?>> reader;
  private final ScanColumn[] columns;
  private final int rowIndex;
  private final String root;
  private final Broadcast<SerializableConfiguration> configuration;

  /**
   * Creates the reader. The given reader returns the index of each row in the file at position
   * rowIndex. The output has the given columns. Deletion vectors of the table with the root are
   * read with the configuration.
   */
  public ScanReader(
      Function1<PartitionedFile, Iterator<?>> reader,
      ScanColumn[] columns,
      int rowIndex,
      String root,
      Broadcast<SerializableConfiguration> configuration) {
    this.reader = reader;
    this.columns = columns;
    this.rowIndex = rowIndex;
    this.root = root;
    this.configuration = configuration;
  }

  @Override
  public Iterator<?> apply(PartitionedFile file) {
    Iterator<?> rows = reader.apply(file);
    RowNumbers.install(rows, rowIndex);
    Configuration settings = configuration.value().value();
    RowSelection selection = FileFacts.selection(file, root, settings);
    return new ScanRows(rows, columns, rowIndex, file, selection);
  }
}
