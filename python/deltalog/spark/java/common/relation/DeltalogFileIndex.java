package io.deltalog.spark;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The files of one snapshot. Spark requests them when it plans a query, with the filters that were
 * pushed down to the scan. The planner, in Python and Rust, returns the files that may contain
 * matching rows.
 *
 * <p>Two indexes are equal if they are for the same version of the same table. Spark may then reuse
 * the scan or the cached rows of one for the other.
 */
public class DeltalogFileIndex implements FileIndex {
  private final String path;
  private final String label;
  private final String identity;
  private final StructType partitionSchema;
  private final String planner;
  private final boolean isInReach;
  private final Listings listings = new Listings();
  private volatile long size = -1;

  /**
   * Whether the log may have the exact number of rows in each partition. Becomes false when a
   * request for only these numbers cannot be answered.
   */
  private volatile boolean answers = true;

  /**
   * Creates the index; planner is the key under which Python finds the planner. If isInReach is
   * false, the files cannot be read through Hadoop.
   */
  public DeltalogFileIndex(
      String path,
      String label,
      String identity,
      StructType partitionSchema,
      String planner,
      boolean isInReach) {
    this.path = path;
    this.label = label;
    this.identity = identity;
    this.partitionSchema = partitionSchema;
    this.planner = planner;
    this.isInReach = isInReach;
  }

  public String path() {
    return path;
  }

  public String label() {
    return label;
  }

  /** Returns the key by which Python finds the planner. */
  public String planner() {
    return planner;
  }

  public boolean isInReach() {
    return isInReach;
  }

  private PackedListing list(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    String filters = FilterText.of(partitionFilters, dataFilters);
    Object packed = Bridge.planners().plan(planner, filters, SQLConf.get().sessionLocalTimeZone());
    PartitionFilter exact = new PartitionFilter(partitionFilters, partitionSchema);
    return new PackedListing(
        PackedValues.bytes(packed), partitionSchema, exact, new PackedRoot(path));
  }

  /**
   * Returns the values of each partition with rows, its number of rows, and the minimum and maximum
   * of each of the columns. Returns null if the log does not have the exact values. Partitions that
   * the filters exclude may be included.
   */
  public PackedValues answers(Seq<Expression> filters, String[] columns) {
    if (!answers) {
      return null;
    }
    Seq<Expression> none = Plans.none();
    String text = FilterText.of(filters, none);
    Object packed =
        Bridge.planners()
            .answers(planner, text, SQLConf.get().sessionLocalTimeZone(), Json.text(columns));
    answers = packed != null || columns.length > 0;
    return packed == null ? null : PackedValues.ofThisVersion(PackedValues.bytes(packed));
  }

  /**
   * Returns the key under which a listing is kept. It contains everything on which the listing
   * depends.
   */
  private static Object key(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    return List.of(partitionFilters, dataFilters, SQLConf.get().sessionLocalTimeZone());
  }

  /**
   * Returns the counts of the files that a scan with these filters reads. The listing itself is
   * kept for the scan.
   */
  public Listings.Listing known(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Object key = key(partitionFilters, dataFilters);
    Listings.Listing known = listings.known(key);
    return known != null ? known : listings.keep(key, list(partitionFilters, dataFilters));
  }

  @Override
  public Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    return listing(partitionFilters, dataFilters).directories();
  }

  /** Returns the files that a scan with these filters reads. */
  public PackedListing listing(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    Object key = key(partitionFilters, dataFilters);
    PackedListing listed = listings.take(key);
    if (listed == null) {
      listed = list(partitionFilters, dataFilters);
      listings.note(key, listed);
    }
    return listed;
  }

  @Override
  public Seq<Path> rootPaths() {
    return Plans.seq(List.of(new TableRoot(path, label)));
  }

  @Override
  public String[] inputFiles() {
    Seq<Expression> none = Plans.none();
    return list(none, none).paths();
  }

  /** Returns the total size of all files. It is computed once, at the first call. */
  @Override
  public long sizeInBytes() {
    if (size < 0) {
      size = Bridge.planners().size(planner);
    }
    return size;
  }

  @Override
  public StructType partitionSchema() {
    return partitionSchema;
  }

  /** Does nothing: a snapshot never changes. */
  @Override
  public void refresh() {}

  public boolean isTimeTravel() {
    return false;
  }

  @Override
  public scala.Option<Object> metadataOpsTimeNs() {
    return scala.Option.empty();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeltalogFileIndex deltalogFileIndex
        && identity.equals(deltalogFileIndex.identity);
  }

  @Override
  public int hashCode() {
    return identity.hashCode();
  }

  @Override
  public String toString() {
    return "deltalog " + new TableRoot(path, label);
  }
}
