package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.reflect.ClassTag$;

/**
 * The rows of bins that an OPTIMIZE orders along a curve. Each new file is one partition of Spark,
 * and has one section of the curve.
 *
 * <ol>
 *   <li>A job draws a sample of the columns by which rows are ordered, and counts the rows of each
 *       old file. The sample determines the ranks of values, and where each new file ends on the
 *       curve (CurvePlaces).
 *   <li>Each row gets the key of its task and its place on the curve. Then the rows are shuffled
 *       and sorted. Bins that keep their order are sorted by their old files.
 * </ol>
 *
 * The keys of a row depend only on its values, its file and its position, so a repeated task
 * shuffles the same rows to the same tasks. A table's columns may have any names, so our columns
 * are identified by position.
 */
public class OrderedRows {
  /** The columns that are added after the columns of a scan (BinRows). */
  private static final String TASK = "__deltalog_task";

  private static final String PLACE = "__deltalog_place";

  private final SparkSession session;
  private final Dataset<Row> scan;
  private final Bins bins;
  private final List<List<String>> paths;
  private final CurveGrid grid;
  private final SampleJob sample;
  private CurvePlaces places;

  /**
   * Takes the rows of a scan (BinRows), and reads a sample of them.
   *
   * @param names the parts of the name of each column by which rows are ordered, as JSON
   */
  public OrderedRows(
      SparkSession session,
      Dataset<Row> scan,
      Bins bins,
      String names,
      boolean isHilbert,
      int bits) {
    this.session = session;
    this.scan = scan;
    this.bins = bins;
    this.paths = Json.list(names);
    this.grid = new CurveGrid(isHilbert, paths.size(), bits);
    Dataset<Row> sampled = read(false);
    this.sample = new SampleJob(sampled, bins, columns(sampled.schema()));
    sample.run();
  }

  /** Returns a copy of a session that shuffles rows to exactly the requested number of tasks. */
  public static SparkSession session(SparkSession given) {
    SparkSession session = BinRows.copied(given);
    session.conf().set("spark.sql.adaptive.enabled", "false");
    return session;
  }

  /** Returns the number of rows of each old file, as 64-bit numbers. */
  public byte[] counts() {
    ByteBuffer counts = ByteBuffer.allocate(8 * sample.counts().length);
    counts.asLongBuffer().put(sample.counts());
    return counts.array();
  }

  /**
   * Returns the rows of the scan with two more columns: the key of the task that writes the row,
   * and the row's position on the curve.
   */
  public Dataset<Row> keyed() {
    places = new CurvePlaces(bins, grid, paths.size(), sample.samples());
    StructType schema = scan.schema();
    // The last columns are the numbers of the file and of the row.
    KeyedRows keys =
        new KeyedRows(places, columns(schema), keys(bins.tasks()), schema.length() - 2);
    RDD<InternalRow> rows = scan.queryExecution().toRdd();
    RDD<InternalRow> keyed =
        rows.mapPartitions(keys, true, ClassTag$.MODULE$.apply(InternalRow.class));
    StructType with =
        schema.add(TASK, DataTypes.IntegerType, false).add(PLACE, DataTypes.BinaryType, false);
    return session.internalCreateDataFrame(keyed, with, false);
  }

  /**
   * Puts keyed rows into one partition for each task, sorts them, and removes their keys; see
   * BinRows.packed.
   */
  public Dataset<Row> shuffled(Dataset<Row> keyed, String directories, boolean areLast, int more) {
    Attribute[] kept = BinRows.kept(keyed, directories, areLast, more);
    int task = kept.length - 2;
    if (!kept[task].name().equals(TASK) || !kept[task + 1].name().equals(PLACE)) {
      throw new IllegalStateException(
          "an internal error of deltalog: the rows have no tasks; nothing was committed");
    }
    List<Column> by = Projection.columns(List.of(kept[task]));
    List<Column> place = Projection.columns(List.of(kept[task + 1]));
    Dataset<Row> parts = keyed.repartition(bins.tasks(), Plans.seq(by));
    Dataset<Row> sorted = parts.sortWithinPartitions(Plans.seq(place));
    return sorted.select(Plans.seq(Projection.columns(Arrays.asList(kept).subList(0, task))));
  }

  /** Finds rows of old files in the new ones; see RowSearch.find. */
  public byte[] find(byte[] asked) {
    Dataset<Row> read = read(true);
    return new RowSearch(read, bins, places, columns(read.schema())).find(asked);
  }

  /**
   * Returns the columns by which rows are ordered, the number of the file and, if requested, the
   * position of the row.
   */
  private Dataset<Row> read(boolean withPositions) {
    List<Attribute> all = Arrays.asList(Projection.attributes(scan));
    List<Attribute> chosen = ordering();
    chosen.addAll(all.subList(all.size() - 2, withPositions ? all.size() : all.size() - 1));
    return scan.select(Plans.seq(Projection.columns(chosen)));
  }

  /**
   * Returns the columns of the table by which rows are ordered, or that contain fields by which
   * rows are ordered.
   */
  private List<Attribute> ordering() {
    Attribute[] all = Projection.attributes(scan);
    List<Attribute> chosen = new ArrayList<>();
    List<String> found = new ArrayList<>();
    for (Attribute column : all) {
      for (List<String> path : paths) {
        String name = path.get(0);
        if (column.name().equals(name) && !found.contains(name)) {
          chosen.add(column);
          found.add(name);
        }
      }
    }
    return chosen;
  }

  private OrderedColumn[] columns(StructType schema) {
    OrderedColumn[] columns = new OrderedColumn[paths.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new OrderedColumn(schema, paths.get(i));
    }
    return columns;
  }

  /**
   * Returns one key for each task. When Spark repartitions rows by a column that contains these
   * keys, the rows with a task's key go to that task's partition.
   */
  private static int[] keys(int tasks) {
    Expression number = new BoundReference(0, DataTypes.IntegerType, false);
    Expression partition =
        new HashPartitioning(Plans.seq(List.of(number)), tasks).partitionIdExpression();
    int[] keys = new int[tasks];
    boolean[] isKnown = new boolean[tasks];
    GenericInternalRow row = new GenericInternalRow(1);
    int known = 0;
    for (int key = 0; known < tasks; key++) {
      row.update(0, Integer.valueOf(key));
      int found = (Integer) partition.eval(row);
      if (!isKnown[found]) {
        isKnown[found] = true;
        keys[found] = key;
        known++;
      }
    }
    return keys;
  }
}
