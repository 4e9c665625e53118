package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.Option;
import scala.collection.immutable.Map$;

/**
 * The rows of the files that an OPTIMIZE rewrites. If all bins keep their order, each bin is one
 * partition, which contains the rows of its files one file after another, in their order. If some
 * bins are ordered, the rows are shuffled (OrderedRows).
 *
 * <p>The last columns of the rows are the number of the old file and the position of the row there.
 */
public class BinRows extends MarkedRows {
  static final String FILE = "__deltalog_file";
  static final String ROW = "__deltalog_row";

  /** Each file is a separate partition, which is never split or combined with other files. */
  private static final String[][] WHOLE_FILES = {
    {"spark.sql.files.maxPartitionBytes", String.valueOf(1L << 60)},
    {"spark.sql.files.openCostInBytes", String.valueOf(1L << 60)},
  };

  private static final String[][] SETTINGS = {
    // Each bin becomes one file.
    {"spark.sql.files.maxRecordsPerFile", "0"},
    // Dates are copied unchanged. If a file states that its dates are in the Julian calendar, the
    // reader converts them.
    {"spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED"},
    {"spark.sql.parquet.int96RebaseModeInRead", "CORRECTED"},
    {"spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED"},
    // Values are read as the core reads them from files: timestamps of other writers are not
    // shifted, strings are not padded, and names of columns are compared ignoring case.
    {"spark.sql.parquet.int96TimestampConversion", "false"},
    {"spark.sql.readSideCharPadding", "false"},
    {"spark.sql.caseSensitive", "false"},
  };

  private final Bins bins;

  /** Describes the rows of bins; tracking is the number of row tracking columns in the files. */
  public BinRows(Bins bins, int tracking) {
    super(2, false, false, tracking);
    this.bins = bins;
  }

  @Override
  public TableCommitProtocol protocol(String root, boolean opensSeveral) {
    return new BinCommitProtocol(root, bins);
  }

  /** Returns a copy of a session with settings for reading each file as a whole. */
  public static SparkSession session(SparkSession given) {
    SparkSession session = copied(given);
    session.conf().unset("spark.sql.files.maxPartitionNum");
    set(session, WHOLE_FILES);
    return session;
  }

  /** Returns a copy of a session with settings for copying values unchanged. */
  static SparkSession copied(SparkSession given) {
    SparkSession session = given.cloneSession();
    set(session, SETTINGS);
    return session;
  }

  private static void set(SparkSession session, String[][] settings) {
    for (String[] setting : settings) {
      session.conf().set(setting[0], setting[1]);
    }
  }

  /** Returns the rows of a relation, with the columns of row tracking. */
  public static Dataset<Row> scan(SparkSession session, String described) {
    // Files that cannot be read cause errors, even if the session's settings ignore such files.
    scala.collection.immutable.Map<String, String> options =
        DeltalogRelation.withAllFiles(Map$.MODULE$.empty());
    DeltalogRelation relation = RelationDescription.relation(session, described, options);
    String[] tracking = ((SnapshotFormat) relation.fileFormat()).rowTracking();
    Dataset<Row> rows = session.baseRelationToDataFrame(relation);
    // Not rows.col("_metadata"), because a column of the table may also have this name.
    Column metadata = rows.metadataColumn("_metadata");
    List<Column> selected = Projection.columns(Arrays.asList(Projection.attributes(rows)));
    if (tracking.length > 0) {
      selected.add(metadata.getField("row_id").as(tracking[0]));
      selected.add(metadata.getField("row_commit_version").as(tracking[1]));
    }
    selected.add(metadata.getField(FileFacts.NUMBER).as(FILE));
    selected.add(metadata.getField("row_index").as(ROW));
    return rows.select(Plans.seq(selected));
  }

  /**
   * Returns the rows of a scan in bins, without the partition columns, which the names of
   * directories contain.
   *
   * @param directories the names of these columns, as JSON
   * @param areLast whether they are the last columns, rather than among the table's columns
   * @param more the number of columns after the table's columns
   */
  public static Dataset<Row> packed(
      SparkSession session,
      Dataset<Row> rows,
      Bins bins,
      String directories,
      boolean areLast,
      int more) {
    List<Attribute> kept = Arrays.asList(kept(rows, directories, areLast, more));
    Dataset<Row> chosen = rows.select(Plans.seq(Projection.columns(kept)));
    RDD<InternalRow> found = chosen.queryExecution().toRdd();
    RDD<InternalRow> packed =
        found.coalesce(bins.count(), false, Option.apply(new BinCoalescer(bins)), null);
    return session.internalCreateDataFrame(packed, chosen.schema(), false);
  }

  /**
   * Returns the columns that packed keeps. If areLast is true, the partition columns are left out
   * by position; otherwise by name, among the table's columns.
   */
  static Attribute[] kept(Dataset<Row> rows, String directories, boolean areLast, int more) {
    List<String> left = Json.list(directories);
    Attribute[] all = Projection.attributes(rows);
    int end = areLast ? all.length - left.size() : all.length;
    List<Attribute> kept = new ArrayList<>();
    for (int i = 0; i < end; i++) {
      boolean isOfDirectory = !areLast && i < end - more && left.contains(all[i].name());
      if (!isOfDirectory) {
        kept.add(all[i]);
      }
    }
    return kept.toArray(new Attribute[0]);
  }
}
