package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.reflect.ClassTag$;

/**
 * The rows of bins that an OPTIMIZE orders along a curve: each new file is one partition of Spark, with a part of the
 * curve.
 *
 * 1. A job draws a sample of the columns, from which the ranks of values and the ends of files follow (CurvePlaces).
 * 2. The rows get the number of their task and their place on the curve, are shuffled, and sorted. Bins that keep their
 *    order are sorted by their old files.
 *
 * What a row gets depends on its values, its file and its position only, so that a task which is repeated shuffles the
 * same rows to the same tasks.
 */
public class OrderedRows {
  private static final String TASK = "__deltalog_task";
  private static final String PLACE = "__deltalog_place";

  private OrderedRows() {}

  /** Returns a copy of a session that shuffles rows to as many tasks as it is asked for. */
  public static SparkSession session(SparkSession given) {
    SparkSession session = BinRows.copied(given);
    session.conf().set("spark.sql.adaptive.enabled", "false");
    return session;
  }

  /**
   * Returns the rows of a scan (BinRows) with two more columns: which task writes a row, and its place.
   *
   * @param names the parts of the name of each column by which rows are ordered, as JSON
   */
  public static Dataset keyed(
      SparkSession session, Dataset scan, Bins bins, String names, boolean isHilbert, int bits) {
    List paths = (List) Json.value(names, List.class);
    CurveGrid grid = new CurveGrid(isHilbert, paths.size(), bits);
    Dataset sampled = sampled(scan, paths);
    List[] samples = new SampleJob(sampled, bins, columns(sampled.schema(), paths)).run();
    CurvePlaces places = new CurvePlaces(bins, grid, paths.size(), samples);
    StructType schema = scan.schema();
    // The last columns are the numbers of the file and of the row.
    int file = schema.length() - 2;
    KeyedRows keys = new KeyedRows(places, columns(schema, paths), keys(bins.tasks()), file);
    RDD rows = scan.queryExecution().toRdd();
    RDD keyed = rows.mapPartitions(keys, true, ClassTag$.MODULE$.apply(InternalRow.class));
    StructType with = schema.add(TASK, DataTypes.IntegerType, false).add(PLACE, DataTypes.BinaryType, false);
    return (Dataset) session.internalCreateDataFrame(keyed, with, false);
  }

  /** Returns keyed rows in the partitions of their tasks, sorted, without the columns of which directories are made. */
  public static Dataset shuffled(Dataset keyed, Bins bins, String directories) {
    List left = Arrays.asList((String[]) Json.value(directories, String[].class));
    Attribute[] all = Projection.attributes(keyed);
    List kept = new ArrayList();
    for (int i = 0; i < all.length - 2; i++) {
      if (!left.contains(all[i].name())) {
        kept.add(ExpressionUtils.column(all[i]));
      }
    }
    Column task = ExpressionUtils.column(all[all.length - 2]);
    Column place = ExpressionUtils.column(all[all.length - 1]);
    Dataset parts = (Dataset) keyed.repartition(bins.tasks(), Plans.seq(Arrays.asList(new Object[] {task})));
    Dataset sorted = (Dataset) parts.sortWithinPartitions(Plans.seq(Arrays.asList(new Object[] {place})));
    return (Dataset) sorted.select(Plans.seq(kept));
  }

  /** Returns the first rows of a scan's sample: the number of the file, and the columns by which rows are ordered. */
  private static Dataset sampled(Dataset scan, List paths) {
    Attribute[] all = Projection.attributes(scan);
    List chosen = new ArrayList();
    chosen.add(ExpressionUtils.column(all[all.length - 2]));
    for (int i = 0; i < all.length - 2; i++) {
      for (int path = 0; path < paths.size(); path++) {
        if (all[i].name().equals(((List) paths.get(path)).get(0))) {
          chosen.add(ExpressionUtils.column(all[i]));
          break;
        }
      }
    }
    return (Dataset) scan.select(Plans.seq(chosen));
  }

  private static OrderedColumn[] columns(StructType schema, List paths) {
    OrderedColumn[] columns = new OrderedColumn[paths.size()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new OrderedColumn(schema, (List) paths.get(i));
    }
    return columns;
  }

  /** Returns for each task a number that Spark's shuffle by one column brings to its partition. */
  private static int[] keys(int tasks) {
    Expression number = new BoundReference(0, DataTypes.IntegerType, false);
    Expression partition =
        new HashPartitioning(Plans.seq(Arrays.asList(new Object[] {number})), tasks).partitionIdExpression();
    int[] keys = new int[tasks];
    boolean[] isKnown = new boolean[tasks];
    GenericInternalRow row = new GenericInternalRow(1);
    int known = 0;
    for (int key = 0; known < tasks; key++) {
      row.update(0, Integer.valueOf(key));
      int found = ((Integer) partition.eval(row)).intValue();
      if (!isKnown[found]) {
        isKnown[found] = true;
        keys[found] = key;
        known++;
      }
    }
    return keys;
  }
}
