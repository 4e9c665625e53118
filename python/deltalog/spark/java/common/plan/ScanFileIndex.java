package io.deltalog.spark;

import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The file index of a snapshot for one scan. Its description shows how many of the table's files
 * are read.
 *
 * <p>The files are listed when the scan is planned, because Spark creates the description of a plan
 * before it lists the files of the scan. The description itself is created without any calls to
 * Python, because Spark may create it in any thread.
 */
public class ScanFileIndex implements FileIndex {
  private final DeltalogFileIndex table;
  private final String counts;
  private final boolean isPlain;

  /** Creates the index. A plain scan cannot read files with deleted rows. */
  public ScanFileIndex(DeltalogFileIndex table, String counts, boolean isPlain) {
    this.table = table;
    this.counts = counts;
    this.isPlain = isPlain;
  }

  private TableRoot root() {
    return new TableRoot(table.path(), table.label() + ", " + counts);
  }

  @Override
  public Seq<Path> rootPaths() {
    return Plans.seq(List.of(root()));
  }

  @Override
  public Seq<PartitionDirectory> listFiles(
      Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    PackedListing listed = table.listing(partitionFilters, dataFilters);
    if (isPlain && listed.hasVectors()) {
      throw new IllegalStateException(
          "deltalog: the scan was planned for files without deletion vectors, but some files have"
              + " one");
    }
    return listed.directories();
  }

  @Override
  public String[] inputFiles() {
    return table.inputFiles();
  }

  @Override
  public long sizeInBytes() {
    return table.sizeInBytes();
  }

  @Override
  public StructType partitionSchema() {
    return table.partitionSchema();
  }

  @Override
  public void refresh() {}

  public boolean isTimeTravel() {
    return table.isTimeTravel();
  }

  @Override
  public scala.Option<Object> metadataOpsTimeNs() {
    return table.metadataOpsTimeNs();
  }

  /** Ignores the filters, because Spark itself compares the filters of scans. */
  @Override
  public boolean equals(Object other) {
    return other instanceof ScanFileIndex scanFileIndex && table.equals(scanFileIndex.table);
  }

  @Override
  public int hashCode() {
    return table.hashCode();
  }

  @Override
  public String toString() {
    return "deltalog " + root();
  }
}
