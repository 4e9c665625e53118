package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.datasources.FileFormatWriter;
import org.apache.spark.sql.execution.datasources.FileFormatWriter$;
import org.apache.spark.sql.execution.datasources.WriteJobStatsTracker;
import scala.Option;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * A Spark job that writes files of a table, and the reports of its tasks.
 *
 * <p>Spark's own FileFormatWriter runs the job, with the table's commit protocol. The job is a
 * separate execution in Spark's UI, unless it is part of another execution, such as a batch of a
 * stream.
 */
public class FileJob {
  /**
   * Longer reports are passed to Python in a file, because py4j takes 50 ms to send a megabyte as
   * text.
   */
  private static final int INLINE = 1 << 14;

  private final QueryExecution query;
  private final String tag;
  private final String root;
  private final List<String> partitionColumns;
  private final Map<String, String> options;
  private final MarkedRows marked;
  private final TableCommitProtocol protocol;
  private final int parts;
  private final boolean isPartOfExecution;

  /**
   * Creates a job that writes rows. The rows are first converted to the columns of the table's
   * files (FileRows).
   *
   * @param description the JSON of `write/job.py`. The values of the partition columns that it
   *     names are strings.
   * @param marked the columns that the rows have in addition to the table's; null if the
   *     description states them
   */
  public FileJob(SparkSession session, Dataset<Row> rows, String description, MarkedRows marked) {
    java.util.Map<String, ?> parts = Json.object(description);
    java.util.Map<String, ?> files = Unchecked.cast(parts.get("rows"));
    java.util.Map<String, ?> balance = Unchecked.cast(files.get("balance"));
    this.parts = balance == null ? 0 : ((Number) balance.get("parts")).intValue();
    this.query = FileRows.of(session, rows, files).queryExecution();
    this.tag = (String) parts.get("tag");
    this.isPartOfExecution = (Boolean) parts.get("isPartOfExecution");
    this.root = Locations.path(query.sparkSession(), (String) parts.get("url"));
    this.partitionColumns = Unchecked.cast(parts.get("partitionColumns"));
    this.options = TableOptions.scala(Unchecked.cast(parts.get("options")));
    this.marked = marked == null ? MarkedRows.of(Unchecked.cast(parts.get("marked"))) : marked;
    int open = query.sparkSession().sessionState().conf().maxConcurrentOutputFileWriters();
    this.protocol = this.marked.protocol(root, open > 0);
  }

  /** Runs the job, and returns the reports of its tasks. */
  public Object run() throws IOException {
    JobTag.during(query.sparkSession().sparkContext(), tag, this::balanced);
    return reports();
  }

  private void balanced() {
    if (parts > 0) {
      BalancedRows.planned(this::execute, parts);
    } else {
      execute();
    }
  }

  private Object execute() {
    // A new execution takes milliseconds, because its plan is described for listeners and the UI.
    if (isPartOfExecution) {
      return written();
    }
    return SQLExecution$.MODULE$.withNewExecutionId(query, Option.apply("deltalog"), this::written);
  }

  private Object written() {
    try {
      return write();
    } catch (InvocationTargetException e) {
      org.apache.spark.unsafe.Platform.throwException(e.getCause());
      return null;
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(
          "deltalog cannot use the file writer of this version of Spark: " + e, e);
    }
  }

  private Object write() throws ReflectiveOperationException {
    SparkSession session = query.sparkSession();
    Seq<Attribute> columns = query.analyzed().output();
    Seq<WriteJobStatsTracker> trackers = Plans.seq(List.of(new PartitionTracker(protocol)));
    Object[] first = {
      session,
      query.executedPlan(),
      new TableParquetFormat(protocol, marked),
      protocol,
      new FileFormatWriter.OutputSpec(root, Map$.MODULE$.empty(), columns),
      LocalTableFiles.in(session.sessionState().newHadoopConfWithOptions(options)),
      partitions(columns),
      Option.empty(),
      trackers,
      options
    };
    Method write = NamedMethod.of(FileFormatWriter$.MODULE$, "write");
    Object[] all = Arrays.copyOf(first, write.getParameterCount());
    for (int i = first.length; i < all.length; i++) {
      Method byDefault = write.getDeclaringClass().getMethod("write$default$" + (i + 1));
      all[i] = byDefault.invoke(FileFormatWriter$.MODULE$);
    }
    return write.invoke(FileFormatWriter$.MODULE$, all);
  }

  private Seq<Attribute> partitions(Seq<Attribute> columns) {
    List<Attribute> found = new ArrayList<>();
    for (String name : partitionColumns) {
      for (Attribute column : Plans.list(columns)) {
        if (column.name().equals(name)) {
          found.add(column);
        }
      }
    }
    return Plans.seq(found);
  }

  /** Returns which rows of a MERGE's source have matched. */
  public SourceMatches matches() throws IOException {
    return new SourceMatches(protocol.reports());
  }

  /**
   * Returns the reports of the tasks as bytes, or the name of a file that contains them. Works for
   * a job that failed, too.
   */
  public Object reports() throws IOException {
    List<byte[]> reports = protocol.reports();
    long size = 0;
    for (byte[] report : reports) {
      size += 4 + report.length;
    }
    if (size <= INLINE) {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream((int) size);
      write(reports, bytes);
      return bytes.toByteArray();
    }
    File file = File.createTempFile("deltalog-reports-", null);
    try (OutputStream out = new FileOutputStream(file)) {
      write(reports, new java.io.BufferedOutputStream(out));
    }
    return file.getPath();
  }

  private static void write(List<byte[]> reports, OutputStream to) throws IOException {
    DataOutputStream out = new DataOutputStream(to);
    for (byte[] report : reports) {
      out.writeInt(report.length);
      out.write(report);
    }
    out.flush();
  }
}
