package io.deltalog.spark;

import java.io.Serializable;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Spark's reader of a file, with checks. The file itself is checked before it is opened, and the
 * sizes that it claims are checked before its contents are read. Runs in tasks.
 *
 * <p>An iterator whose declared items are rows may return batches of rows, so deltalog's readers
 * check the class of each item.
 */
public class GuardedReader extends AbstractFunction1<PartitionedFile, Iterator<?>>
    implements Serializable {
  private final Function1<PartitionedFile, Iterator<?>> reader;
  private final String root;

  /** Creates the reader of files of the table with the root, a Hadoop path. */
  public GuardedReader(Function1<PartitionedFile, Iterator<?>> reader, String root) {
    this.reader = reader;
    this.root = root;
  }

  @Override
  public Iterator<?> apply(PartitionedFile file) {
    Path path = file.toPath();
    LocalPlace.checkRead(root, path);
    try {
      Iterator<?> rows = open(file);
      return guarded(rows, path, file.fileSize());
    } catch (StackOverflowError | OutOfMemoryError e) {
      throw FatalFiles.faultOf(e, path, null);
    }
  }

  /** Returns the rows of a file, which Spark's reader reads. */
  protected Iterator<?> open(PartitionedFile file) {
    return reader.apply(file);
  }

  private static GuardedRows guarded(Iterator<?> rows, Path path, long size) {
    ParquetFileReader open = ParquetReaders.file(rows);
    PageClaims claims = null;
    if (open != null) {
      claims = PageClaims.of(open, path, size);
      CheckedRowGroups.install(rows, claims);
    }
    return new GuardedRows(rows, path, claims);
  }
}
