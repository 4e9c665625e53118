package io.deltalog.spark;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.OutputMetrics;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The commit protocol of a job that writes a table's files.
 *
 * <ul>
 *   <li>Files get their final names at once; nothing is renamed, and nothing is listed. Each
 *       attempt of a task draws new names, and only the report of the attempt that Spark accepts
 *       counts. So an attempt that dies, or that ends in the moment when its job fails, leaves at
 *       most a file that no version refers to.
 *   <li>An attempt that fails, or that may not commit, deletes its files. The job's runner deletes
 *       the files of accepted attempts by their reports.
 *   <li>Spark makes a copy for each task. The copy is shared with the writers of the task, because
 *       all of them travel in one closure.
 * </ul>
 */
public class TableCommitProtocol extends FileCommitProtocol implements Serializable {
  private static final String CHANGES = "_change_data/";
  private static final String NUL = String.valueOf((char) 0);

  /**
   * Set in the driver's process, which makes the files of its own tasks durable all at the same
   * time.
   */
  private static boolean isDriver;

  private final String root;
  private final boolean opensSeveral;
  private final boolean removesOnce;
  private transient List<byte[]> accepted;
  private transient TaskReport report;
  private transient TaskPartitions partitions;
  private transient ChangedRows changed;

  /** The paths within the table of the files that this attempt has named, by their whole paths. */
  private transient Map<String, Place> places;

  private transient List<String> opened;
  private transient long bytes;
  private transient long rows;

  /** Where a file is below the table's directory, and the values of its partition columns. */
  private record Place(String name, List<String> partition) {}

  /**
   * Creates the protocol for a table's root, a Hadoop path. A task may have files of several
   * partitions open; a statement may have to remove each row at most once.
   */
  public TableCommitProtocol(String root, boolean opensSeveral, boolean removesOnce) {
    this.root = root;
    this.opensSeveral = opensSeveral;
    this.removesOnce = removesOnce;
  }

  @Override
  public void setupJob(JobContext context) {
    isDriver = true;
    accepted = new ArrayList<>();
  }

  @Override
  public void setupTask(TaskAttemptContext context) {
    try {
      report = new TaskReport();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    changed = null;
    partitions = new TaskPartitions(opensSeveral);
    places = new HashMap<>();
    opened = new ArrayList<>();
    bytes = 0;
    rows = 0;
  }

  /** Returns the rows that a statement changes in this attempt. */
  public ChangedRows changed() {
    if (changed == null) {
      changed = new ChangedRows(removesOnce);
    }
    return changed;
  }

  /**
   * Returns the writer of rows with markers, whose table's columns go to a file; changes is null if
   * they are not recorded, given is the number of all columns.
   */
  protected OutputWriter marked(
      OutputWriter file, ChangeWriter changes, StructType columns, int given) {
    return new RowChangeWriter(file, changes, changed(), columns, given);
  }

  public void announce(InternalRow partition) {
    partitions.announce(partition);
  }

  @Override
  public String newTaskTempFile(
      TaskAttemptContext context, Option<String> directory, FileNameSpec name) {
    return newTaskTempFile(context, directory, name.prefix(), name.suffix());
  }

  /** Spark 4.0 asks here. */
  @Override
  public String newTaskTempFile(
      TaskAttemptContext context, Option<String> directory, String extension) {
    return newTaskTempFile(context, directory, "", extension);
  }

  private String newTaskTempFile(
      TaskAttemptContext context, Option<String> directory, String prefix, String suffix) {
    int task = task(context);
    Object[] parts = {prefix, Integer.valueOf(task), UUID.randomUUID(), suffix};
    String name = String.format(Locale.ROOT, "%spart-%05d-%s%s", parts);
    String below = directory(task, directory.isDefined() ? escaped(directory.get()) : null);
    String place = below == null ? name : below + "/" + name;
    String path = new Path(root, place).toString();
    places.put(path, new Place(place, Arrays.asList(partitionValues(task, below))));
    return path;
  }

  /**
   * Returns the directory of a partition with the one character escaped that Spark leaves and no
   * path can have.
   */
  private static String escaped(String directory) {
    return directory.replace(NUL, "%00");
  }

  /** Returns the number of the task, which is also the number of its partition of the rows. */
  protected static int task(TaskAttemptContext context) {
    return context.getTaskAttemptID().getTaskID().getId();
  }

  /**
   * Returns the directory of a new file, for which Spark has named one by its partition; null for
   * the root.
   */
  protected String directory(int task, String named) {
    return named;
  }

  /** Returns the text of the partition values of a new file in a directory. */
  protected String[] partitionValues(int task, String directory) {
    return partitions.ofFileIn(directory);
  }

  /** Adds to the report what the task has done in addition to writing files. */
  protected void addTo(TaskReport added, int task) throws IOException {
    if (changed != null) {
      changed.reportTo(added);
    }
  }

  /**
   * Returns the path of the change data file for the data file at this path. (PROTOCOL, "Change
   * Data Files".)
   */
  public String changeFile(String path) {
    Place named = places.get(path);
    String place = CHANGES + named.name();
    String changes = new Path(root, place).toString();
    places.put(changes, new Place(place, named.partition()));
    return changes;
  }

  @Override
  public String newTaskTempFileAbsPath(
      TaskAttemptContext context, String directory, FileNameSpec name) {
    throw new UnsupportedOperationException("a table has no partitions elsewhere");
  }

  @Override
  public String newTaskTempFileAbsPath(
      TaskAttemptContext context, String directory, String extension) {
    throw new UnsupportedOperationException("a table has no partitions elsewhere");
  }

  /** Records that the file exists from now on, unless a link leads elsewhere. */
  public void opened(String path) {
    LocalPlace.checkWrite(root, new Path(path));
    opened.add(path);
  }

  /** Reports a file that is complete. */
  public void complete(String path, long count, TaskAttemptContext context) throws IOException {
    Path location = new Path(path);
    if (!isDriver) {
      WrittenFile.sync(location, context.getConfiguration());
    }
    WrittenFile file = WrittenFile.of(location, count, context.getConfiguration());
    Place named = places.get(path);
    String place = named.name();
    boolean isData = !place.startsWith(CHANGES);
    report.addFile(
        isData ? TaskReport.DATA_FILE : TaskReport.CHANGE_FILE, place, named.partition(), file);
    bytes += file.size();
    rows += isData ? count : 0;
  }

  @Override
  public FileCommitProtocol.TaskCommitMessage commitTask(TaskAttemptContext context) {
    CommitPermission.request(context);
    try {
      addTo(report, task(context));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    // The description of a task in Spark's UI.
    OutputMetrics metrics = TaskContext.get().taskMetrics().outputMetrics();
    metrics.setBytesWritten(bytes);
    metrics.setRecordsWritten(rows);
    return new FileCommitProtocol.TaskCommitMessage(report.toBytes());
  }

  @Override
  public void abortTask(TaskAttemptContext context) {
    for (String file : opened) {
      Path path = new Path(file);
      try {
        path.getFileSystem(context.getConfiguration()).delete(path, false);
      } catch (IOException e) {
        // No version refers to the file, so that VACUUM removes it. The failure of the task is what
        // users must see.
      }
    }
  }

  /**
   * Spark calls it in other threads, perhaps still when the one who runs the job was interrupted.
   */
  @Override
  public synchronized void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {
    accepted.add((byte[]) message.obj());
  }

  @Override
  public synchronized void commitJob(
      JobContext context, Seq<FileCommitProtocol.TaskCommitMessage> messages) {
    // The same messages, in the order of the tasks.
    List<byte[]> ordered = new ArrayList<>();
    for (FileCommitProtocol.TaskCommitMessage taskCommitMessage : Plans.each(messages)) {
      ordered.add((byte[]) taskCommitMessage.obj());
    }
    accepted = ordered;
  }

  @Override
  public void abortJob(JobContext context) {
    // The caller that runs the job has the reports.
  }

  /** Returns the reports of all accepted attempts, even for a job that failed. */
  public synchronized List<byte[]> reports() {
    return accepted == null ? new ArrayList<>() : new ArrayList<>(accepted);
  }
}
