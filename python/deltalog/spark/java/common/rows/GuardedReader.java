package io.deltalog.spark;

import java.io.Serializable;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Spark's reader of a file, which checks the file before it is opened, and the sizes that it claims
 * before it is read. Runs in tasks.
 */
public class GuardedReader extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final String root;

  /** Creates the reader of files of the table with the root, a Hadoop path. */
  public GuardedReader(Function1 reader, String root) {
    this.reader = reader;
    this.root = root;
  }

  @Override
  public Object apply(Object file) {
    Path path = ((PartitionedFile) file).toPath();
    LocalPlace.checkRead(root, path);
    try {
      Iterator rows = (Iterator) reader.apply(file);
      return guarded(rows, path, ((PartitionedFile) file).fileSize());
    } catch (StackOverflowError | OutOfMemoryError e) {
      throw FatalFiles.faultOf(e, path, null);
    }
  }

  private static GuardedRows guarded(Iterator rows, Path path, long size) {
    ParquetFileReader open = ParquetReaders.file(rows);
    PageClaims claims = null;
    if (open != null) {
      claims = PageClaims.of(open, path, size);
      CheckedRowGroups.install(rows, claims);
    }
    return new GuardedRows(rows, path, claims);
  }
}
