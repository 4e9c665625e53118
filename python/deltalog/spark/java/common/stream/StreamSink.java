package io.deltalog.spark;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD$;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.streaming.OutputMode;
import scala.collection.immutable.Seq;

/**
 * A table to which a stream writes. Each batch is one commit (`streams/sink.py`).
 *
 * <p>Spark calls the sink in the thread of the query, in which a local property contains the id of
 * the query.
 */
public class StreamSink implements Sink {
  /**
   * The name of this local property. The class that defines it differs between releases of Spark.
   */
  private static final String QUERY = "sql.streaming.queryId";

  private static final String ADAPTIVE = "spark.sql.adaptive.enabled";

  private final scala.collection.immutable.Map<String, String> options;
  private final String path;
  private final Map<String, Object> stream = new HashMap<>();

  /** A copy of the query's session with adaptive execution, for writes that shuffle their rows. */
  private SparkSession adaptive;

  /**
   * Creates the sink of a stream. Throws an exception if the stream cannot write to the table.
   *
   * @param partitions the columns of `partitionBy`; empty if it was not called
   * @param creates whether the table is created next, for this stream
   */
  public StreamSink(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      Seq<String> partitions,
      OutputMode mode,
      boolean creates) {
    // The options may contain table properties, whose names are case-sensitive.
    this.options =
        options instanceof CaseInsensitiveMap<?> given
            ? Unchecked.cast(given.originalMap())
            : options;
    this.path = options.getOrElse("path", () -> null);
    stream.put("mode", mode.toString());
    stream.put("partitionBy", Plans.list(partitions));
    // Spark turns adaptive execution off in the session of the query, so the setting is read from
    // the user's session.
    stream.put("isAdaptive", session.sessionState().conf().adaptiveExecutionEnabled());
    Bridge.streamSinks()
        .start(session, TableOptions.json(this.options), Json.text(stream), creates);
  }

  /**
   * Sets the table properties among the stream's options, because Spark does not pass them to the
   * catalog.
   */
  public void define(SparkSession session) {
    Bridge.streamSinks().define(session, TableOptions.json(options));
  }

  @Override
  public void addBatch(long number, org.apache.spark.sql.Dataset<Row> data) {
    SparkSession session = ((Dataset) data).sparkSession();
    Map<String, Object> batch = new HashMap<>(stream);
    batch.put("query", session.sparkContext().getLocalProperty(QUERY));
    batch.put("number", number);
    try {
      Bridge.streamSinks().write(session, TableOptions.json(options), data, Json.text(batch), this);
    } catch (RuntimeException e) {
      throw StoppedBatch.thrown(e, session.sparkContext());
    }
  }

  /**
   * Returns the rows of a batch, for a job that writes them. They are computed by the plan of the
   * batch itself. A new plan on top of it would be executed as another query, without the state of
   * the stream, and without effect on its watermark and metrics.
   *
   * @param isShuffled whether the job shuffles the rows, to write files of a good size
   */
  public synchronized Dataset<Row> rows(Dataset<Row> data, boolean isShuffled)
      throws ReflectiveOperationException {
    Method from = NamedMethod.of(LogicalRDD$.MODULE$, "fromDataset");
    Object[] first = {data.queryExecution().toRdd(), data, false};
    Object[] all = Arrays.copyOf(first, from.getParameterCount());
    for (int i = first.length; i < all.length; i++) {
      // Spark 4.3 has a fourth parameter, for which its default is passed.
      String byDefault = "fromDataset$default$" + (i + 1);
      all[i] = from.getDeclaringClass().getMethod(byDefault).invoke(LogicalRDD$.MODULE$);
    }
    LogicalPlan plan = (LogicalPlan) from.invoke(LogicalRDD$.MODULE$, all);
    SparkSession session = data.sparkSession();
    if (isShuffled) {
      if (adaptive == null) {
        adaptive = session.cloneSession();
        adaptive.conf().set(ADAPTIVE, "true");
      }
      session = adaptive;
    }
    return Dataset.ofRows(session, plan);
  }

  /**
   * Throws an exception if the query is being stopped. To stop it, Spark interrupts this thread.
   */
  public void ensureWanted() throws InterruptedException {
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedException("the query was stopped; nothing was committed");
    }
  }

  @Override
  public String toString() {
    return "deltalog[" + path + "]";
  }
}
