package io.deltalog.spark;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.fs.Path;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of a file that an untrusted writer may have made: batches, or single rows. If the file
 * makes Spark request more memory than a file can need, this raises an error about the file. The
 * original error would end the executor, and in local mode the driver.
 */
final class GuardedRows extends AbstractIterator<Object> implements Closeable {
  private final Iterator<?> rows;
  private final Path path;
  private final PageClaims claims;

  /** Guards the rows of the file at the path; claims is null if they are not known. */
  GuardedRows(Iterator<?> rows, Path path, PageClaims claims) {
    this.rows = rows;
    this.path = path;
    this.claims = claims;
  }

  /** Returns the rows without the guard. */
  Iterator<?> source() {
    return rows;
  }

  /** Returns the checks of the file, or null. */
  PageClaims claims() {
    return claims;
  }

  @Override
  public boolean hasNext() {
    try {
      return rows.hasNext();
    } catch (StackOverflowError | OutOfMemoryError | RuntimeException e) {
      throw FatalFiles.faultOf(e, path, claims);
    }
  }

  @Override
  public Object next() {
    try {
      return rows.next();
    } catch (StackOverflowError | OutOfMemoryError | RuntimeException e) {
      throw FatalFiles.faultOf(e, path, claims);
    }
  }

  @Override
  public void close() throws IOException {
    if (rows instanceof Closeable closeable) {
      closeable.close();
    }
  }
}
