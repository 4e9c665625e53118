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
 * A table that a stream writes to: each batch is one commit (`streams/sink.py`).
 *
 * <p>Spark calls it in the thread of the query. It tells the id of the query only there, in a
 * property of the thread.
 */
public class StreamSink implements Sink {
  /** The property of the thread; the class of Spark that has the name moves between releases. */
  private static final String QUERY = "sql.streaming.queryId";

  private static final String ADAPTIVE = "spark.sql.adaptive.enabled";

  private final scala.collection.immutable.Map<String, String> options;
  private final String path;
  private final Map<String, Object> stream = new HashMap<>();

  /** A copy of the query's session in which Spark may shuffle rows as a write asks for it. */
  private SparkSession adaptive;

  /**
   * Creates the sink of a stream that a session starts.
   *
   * @param partitions the names of the partition columns, if the stream names some
   * @param creates whether the table is created for the stream
   */
  public StreamSink(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      Seq<String> partitions,
      OutputMode mode,
      boolean creates) {
    // Properties of tables are among them, whose names have capitals.
    this.options =
        options instanceof CaseInsensitiveMap<?> given
            ? Unchecked.cast(given.originalMap())
            : options;
    this.path = options.getOrElse("path", () -> null);
    stream.put("mode", mode.toString());
    stream.put("partitionBy", Plans.list(partitions));
    // In the session of the query, Spark turns it off.
    stream.put("isAdaptive", session.sessionState().conf().adaptiveExecutionEnabled());
    Bridge.streamSinks()
        .start(session, TableOptions.json(this.options), Json.text(stream), creates);
  }

  /** Gives the table what its definition lacks of the stream's options. */
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
   * Returns the rows of a batch, for a job that writes them. A plan on top of the batch's own would
   * be executed as a new query: without its state, and unseen by the watermark and the metrics.
   *
   * @param isShuffled whether the job shuffles the rows, by their sizes
   */
  public synchronized Dataset<Row> rows(Dataset<Row> data, boolean isShuffled)
      throws ReflectiveOperationException {
    Method from = NamedMethod.of(LogicalRDD$.MODULE$, "fromDataset");
    Object[] first = {data.queryExecution().toRdd(), data, false};
    Object[] all = Arrays.copyOf(first, from.getParameterCount());
    for (int i = first.length; i < all.length; i++) {
      // Spark 4.3 has a fourth one.
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

  /** Throws an exception if the query is being stopped, which interrupts the thread. */
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
