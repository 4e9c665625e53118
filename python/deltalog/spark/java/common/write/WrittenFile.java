package io.deltalog.spark;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A complete Parquet file, with the bytes of its footer, from which the core computes the
 * statistics.
 */
public class WrittenFile {
  /** Footers are usually shorter, so one request reads the whole footer. */
  private static final int READ = 1 << 16;

  /** The size of the last part of a file: the length of the metadata, and the magic word. */
  private static final int END = 8;

  private final long size;
  private final long modified;
  private final long rows;
  private final byte[] footer;

  private WrittenFile(long size, long modified, long rows, byte[] footer) {
    this.size = size;
    this.modified = modified;
    this.rows = rows;
    this.footer = footer;
  }

  /** Reads the end of a file that was just written with the given number of rows. */
  public static WrittenFile of(Path path, long rows, Configuration configuration)
      throws IOException {
    FileSystem system = path.getFileSystem(configuration);
    FileStatus status = system.getFileStatus(path);
    long size = status.getLen();
    byte[] tail = new byte[(int) Math.min(size, READ)];
    try (FSDataInputStream file = system.open(path)) {
      file.readFully(size - tail.length, tail);
      long length =
          END
              + (long)
                  ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt(tail.length - END);
      byte[] footer;
      if (length <= tail.length) {
        footer = Arrays.copyOfRange(tail, tail.length - (int) length, tail.length);
      } else {
        footer = new byte[(int) length];
        file.readFully(size - length, footer);
      }
      return new WrittenFile(size, status.getModificationTime(), rows, footer);
    }
  }

  /** Makes a local file durable. Other file systems have done this when the file was closed. */
  public static void sync(Path path, Configuration configuration) throws IOException {
    Path whole = path.getFileSystem(configuration).makeQualified(path);
    if ("file".equals(whole.toUri().getScheme())) {
      try (FileChannel channel =
          FileChannel.open(Paths.get(whole.toUri().getPath()), StandardOpenOption.WRITE)) {
        channel.force(true);
      }
    }
  }

  public long size() {
    return size;
  }

  /** Returns the time of the last change, in milliseconds since the epoch. */
  public long modified() {
    return modified;
  }

  public long rows() {
    return rows;
  }

  /** Returns the bytes from the footer's metadata to the end of the file. */
  public byte[] footer() {
    return footer;
  }
}
