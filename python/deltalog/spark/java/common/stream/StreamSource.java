package io.deltalog.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadAllAvailable;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A table as the source of a stream, which returns the rows that are added to the table. Each batch
 * is a relation of files, as in other reads. The core decides which files belong to a batch, and
 * Spark's checkpoint stores the progress.
 */
public final class StreamSource
    implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow, ReportsSourceMetrics {
  private final SparkSession session;
  private final scala.collection.immutable.Map<String, String> options;
  private final StructType schema;
  private final KeptStart start;

  /** The string that identifies the stream to Python. */
  private String stream;

  /** Whether the first version of the stream has been determined. */
  private boolean isBegun;

  /** Whether the trigger ends the stream at the newest version. */
  private boolean endsAtNewest;

  /** The end of the newest version that was seen, or null. */
  private String newest;

  /** The offset and the newest version for which the metrics were computed. */
  private String measured;

  private Map<String, String> metrics = Map.of();

  private StreamSource(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      String schema,
      String place) {
    this.session = session;
    this.options = options;
    this.schema = columns(schema);
    this.start = new KeptStart(session, place);
    this.stream = Bridge.streamSources().open(session, TableOptions.json(options), schema, place);
  }

  /**
   * Returns the columns of a stream with these options, and stores them for `create`.
   *
   * @param expected the columns that the user expects, or null
   */
  public static StructType schema(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      StructType expected) {
    String found =
        Bridge.streamSources()
            .columns(
                session, TableOptions.json(options), expected == null ? null : expected.json());
    AnalyzedSchemas.keep(options, found);
    return columns(found);
  }

  /**
   * Returns the stream with these options. It must still have the columns that `schema` returned.
   *
   * @param expected the columns that the user expects, or null
   * @param place the path that Spark gives to the source within the query's checkpoint
   */
  public static StreamSource create(
      SparkSession session,
      scala.collection.immutable.Map<String, String> options,
      StructType expected,
      String place) {
    String analyzed = AnalyzedSchemas.of(options);
    if (analyzed == null) {
      analyzed =
          Bridge.streamSources()
              .columns(
                  session, TableOptions.json(options), expected == null ? null : expected.json());
    }
    return new StreamSource(session, options, analyzed, place);
  }

  private static StructType columns(String json) {
    return TableDefaults.ofLog((StructType) DataType.fromJson(json));
  }

  @Override
  public StructType schema() {
    return schema;
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return new StreamLimit();
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    if (start == null && !isBegun) {
      begin(this.start.read());
    }
    String from = start == null ? null : start.json();
    boolean isUnlimited = limit instanceof ReadAllAvailable;
    Map<String, Object> found =
        Json.object(
            Bridge.streamSources().latest(session, stream, from, isUnlimited, endsAtNewest));
    newest = (String) found.get("newest");
    return offset((String) found.get("offset"));
  }

  /**
   * Determines the first version of the stream, and stores it in the checkpoint.
   *
   * @param kept the start that the checkpoint has stored before, or null
   */
  private void begin(String kept) {
    Map<String, Object> begun = Json.object(Bridge.streamSources().begin(session, stream, kept));
    String found = (String) begun.get("start");
    if (found != null && !found.equals(kept)) {
      start.write(found);
    }
    stream = (String) begun.get("stream");
    isBegun = true;
  }

  private static Offset offset(String json) {
    return json == null ? null : new StreamOffset(json);
  }

  /** Returns the end of the newest version that was seen, for the progress of the query. */
  @Override
  public Offset reportLatestOffset() {
    return offset(newest);
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    endsAtNewest = true;
  }

  /** Never called, because Spark calls `latestOffset` with a limit instead. */
  @Override
  public Option<org.apache.spark.sql.execution.streaming.Offset> getOffset() {
    throw new UnsupportedOperationException("latestOffset(Offset, ReadLimit) is called instead");
  }

  @Override
  public Dataset<Row> getBatch(
      Option<org.apache.spark.sql.execution.streaming.Offset> start,
      org.apache.spark.sql.execution.streaming.Offset end) {
    // After a restart, Spark may request a first batch that had already begun. If no start was
    // stored then, none must be determined now, because it could differ.
    String kept = start.isDefined() || isBegun ? null : this.start.read();
    if (kept != null) {
      begin(kept);
    }
    String from = start.isDefined() ? ((Offset) start.get()).json() : null;
    String described = Bridge.streamSources().batch(session, stream, from, end.json());
    DeltalogRelation relation = RelationDescription.relation(session, described, options);
    return org.apache.spark.sql.classic.Dataset.ofRows(
        (org.apache.spark.sql.classic.SparkSession) session,
        LogicalRelation$.MODULE$.apply(relation, true));
  }

  @Override
  public void commit(org.apache.spark.sql.execution.streaming.Offset end) {
    Bridge.streamSources().release(session, stream, end.json());
  }

  /**
   * Returns how much has not been read yet. Spark calls this after each check for new rows, even if
   * there were none.
   */
  @Override
  public Map<String, String> metrics(Optional<Offset> consumed) {
    String from = consumed.map(Offset::json).orElse(null);
    String of = from + newest;
    if (!of.equals(measured)) {
      Map<String, String> found = new HashMap<>();
      Json.object(Bridge.streamSources().outstanding(session, stream, from))
          .forEach((name, value) -> found.put(name, String.valueOf(value)));
      metrics = found;
      measured = of;
    }
    return metrics;
  }

  @Override
  public void stop() {
    Bridge.streamSources().stop(stream);
  }

  @Override
  public String toString() {
    return "deltalog[" + options.apply("path") + "]";
  }
}
