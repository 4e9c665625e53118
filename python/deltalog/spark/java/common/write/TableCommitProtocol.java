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
 *   <li>Files have their final names from the start; nothing is renamed or listed. Each attempt of
 *       a task chooses new names, and only the report of the attempt that Spark accepts counts. So
 *       an attempt that dies, or that ends at the moment when its job fails, at most leaves a file
 *       that no version refers to.
 *   <li>An attempt that fails, or that may not commit, deletes its files. The job's runner deletes
 *       the files of accepted attempts, which their reports list.
 *   <li>Spark makes a copy of the protocol for each task. The writers of the task share this copy,
 *       because all of them are serialized in one closure.
 * </ul>
 */
public class TableCommitProtocol extends FileCommitProtocol implements Serializable {
  private static final String CHANGES = "_change_data/";
  private static final String NUL = String.valueOf((char) 0);

  /**
   * True only in the driver's process. There, the files of the driver's own tasks are made durable
   * all together.
   */
  private static boolean isDriver;

  private final String root;
  private final boolean opensSeveral;
  private final boolean removesOnce;
  private transient List<byte[]> accepted;
  private transient TaskReport report;
  private transient TaskPartitions partitions;
  private transient ChangedRows changed;

  /**
   * The files that this attempt has named: the place of each file in the table, by its complete
   * path.
   */
  private transient Map<String, Place> places;

  private transient List<String> opened;
  private transient long bytes;
  private transient long rows;

  /** The path of a file below the table's directory, and the values of its partition columns. */
  private record Place(String name, List<String> partition) {}

  /**
   * Creates the protocol for a table's root, a Hadoop path. opensSeveral states whether a task may
   * have files of several partitions open; removesOnce states whether each row may be removed at
   * most once.
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
   * Returns the writer of rows with markers. It passes the table's columns to the writer of a file.
   * changes is null if changes are not recorded; given is the number of all columns.
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

  /** Spark 4.0 calls this method. */
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
   * Returns the directory of a partition with NUL characters escaped, too. Spark does not escape
   * them, but paths cannot contain them.
   */
  private static String escaped(String directory) {
    return directory.replace(NUL, "%00");
  }

  /** Returns the number of the task, which is also the number of its partition of the rows. */
  protected static int task(TaskAttemptContext context) {
    return context.getTaskAttemptID().getTaskID().getId();
  }

  /**
   * Returns the directory of a new file; null for the root. named is the directory that Spark chose
   * by the partition.
   */
  protected String directory(int task, String named) {
    return named;
  }

  /** Returns the partition values, as strings, of a new file in a directory. */
  protected String[] partitionValues(int task, String directory) {
    return partitions.ofFileIn(directory);
  }

  /** Adds the task's other results to the report, besides the files. */
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

  /** Records that the file exists from now on, after checking that no link leads elsewhere. */
  public void opened(String path) {
    LocalPlace.checkWrite(root, new Path(path));
    opened.add(path);
  }

  /** Adds a complete file to the report. */
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
    // Spark's UI shows these metrics of the task.
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
        // If the file cannot be deleted, VACUUM removes it later, because no version refers to it.
        // Users must see the failure of the task, and not this one.
      }
    }
  }

  /**
   * Spark calls this in other threads, possibly after the thread that runs the job was interrupted.
   */
  @Override
  public synchronized void onTaskCommit(FileCommitProtocol.TaskCommitMessage message) {
    accepted.add((byte[]) message.obj());
  }

  @Override
  public synchronized void commitJob(
      JobContext context, Seq<FileCommitProtocol.TaskCommitMessage> messages) {
    // These are the same messages, in the order of the tasks.
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
