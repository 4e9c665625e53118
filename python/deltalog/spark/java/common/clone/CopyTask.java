package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSError;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.executor.OutputMetrics;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Copies data files of a table to its clone, and reports for each copy: the number of the file
 * (i32), the unique part of the copy's name (i64), and its size (i64). Runs in tasks.
 *
 * <p>Each attempt chooses unique names for its copies, so files from an attempt that Spark has
 * given up do not belong to any version. A failed attempt deletes its copies.
 */
public class CopyTask extends AbstractFunction1<Iterator<InternalRow>, byte[]>
    implements Serializable {
  private static final int PIECE = 1 << 20;
  private static final SecureRandom NAMES = new SecureRandom();

  private final String source;
  private final String clone;
  private final Broadcast<SerializableConfiguration> configuration;

  /** Takes the roots of both tables as Hadoop paths, and Hadoop's settings. */
  public CopyTask(String source, String clone, Broadcast<SerializableConfiguration> configuration) {
    this.source = source;
    this.clone = clone;
    this.configuration = configuration;
  }

  @Override
  public byte[] apply(Iterator<InternalRow> rows) {
    Configuration settings = configuration.value().value();
    PackedRoot root = new PackedRoot(source);
    List<Path> made = new ArrayList<>();
    ByteArrayOutputStream told = new ByteArrayOutputStream();
    boolean isDone = false;
    try {
      while (rows.hasNext()) {
        ByteBuffer files = ByteBuffer.wrap(rows.next().getBinary(0));
        while (files.hasRemaining()) {
          copy(files, root, settings, made, new DataOutputStream(told));
        }
      }
      isDone = true;
      return told.toByteArray();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      if (!isDone) {
        delete(made, settings);
      }
    }
  }

  /** Copies the next file. */
  private void copy(
      ByteBuffer files,
      PackedRoot root,
      Configuration settings,
      List<Path> made,
      DataOutputStream told)
      throws IOException {
    int number = files.getInt();
    long size = files.getLong();
    boolean isOutside = files.get() != 0;
    String path = PackedValues.text(files);
    Path from = new Path(isOutside ? root.outside(path) : root.text(path));
    long unique = NAMES.nextLong();
    String start = PackedValues.text(files) + String.format("%016x", unique);
    Path to = new Path(clone + "/" + start + "-" + PackedValues.text(files));
    long copied;
    LocalPlace.checkRead(source, from);
    LocalPlace.checkWrite(clone, to);
    try {
      copied = copy(from, to, settings, made);
    } catch (IOException e) {
      throw failed(from, to, e);
    } catch (FSError e) {
      throw failed(from, to, new IOException(e));
    } catch (IllegalArgumentException e) {
      throw failed(from, to, e);
    }
    if (copied != size) {
      String message = "the file has " + copied + " bytes, and the log says " + size;
      throw new FileFault(FileFault.CORRUPT, message, null, from, null);
    }
    told.writeInt(number);
    told.writeLong(unique);
    told.writeLong(size);
    // Spark's UI shows these metrics of the task.
    OutputMetrics metrics = TaskContext.get().taskMetrics().outputMetrics();
    metrics.setBytesWritten(metrics.bytesWritten() + size);
    metrics.setRecordsWritten(metrics.recordsWritten() + 1);
  }

  private static FileFault failed(Path from, Path to, Exception cause) {
    String message = "the file could not be copied to " + to + ": " + cause.getMessage();
    String hint = "a larger spark.deltalog.minSizeForExecutors leaves the copies to the driver";
    return new FileFault(FileFault.UNAVAILABLE, message, hint, from, cause);
  }

  private static long copy(Path from, Path to, Configuration settings, List<Path> made)
      throws IOException {
    try (FSDataInputStream in = open(from, settings)) {
      made.add(to);
      long copied = copy(in, to, settings);
      WrittenFile.sync(to, settings);
      return copied;
    }
  }

  private static FSDataInputStream open(Path file, Configuration settings) throws IOException {
    try {
      return file.getFileSystem(settings).open(file);
    } catch (FileNotFoundException e) {
      throw new FileFault(
          FileFault.MISSING, "the file is not there", FileFault.MISSING_HINT, file, e);
    }
  }

  private static long copy(FSDataInputStream in, Path to, Configuration settings)
      throws IOException {
    byte[] piece = new byte[PIECE];
    long copied = 0;
    try (FSDataOutputStream out = to.getFileSystem(settings).create(to, false)) {
      int read = in.read(piece);
      while (read >= 0) {
        if (TaskContext.get().isInterrupted()) {
          throw new TaskKilledException("the copy was interrupted");
        }
        out.write(piece, 0, read);
        copied += read;
        read = in.read(piece);
      }
    }
    return copied;
  }

  private static void delete(List<Path> made, Configuration settings) {
    for (Path path : made) {
      try {
        path.getFileSystem(settings).delete(path, false);
      } catch (IOException e) {
        // If the file cannot be deleted, VACUUM removes it later, because no version refers to it.
        // Users must see the failure of the task, and not this one.
      }
    }
  }
}
