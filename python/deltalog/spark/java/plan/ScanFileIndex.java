package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The file index of a snapshot as one scan has it. Its text says how many of the table's files are read.
 *
 * The files are listed when the scan is planned, because Spark fixes the text of a plan before it lists files
 * for the scan. The text itself asks nobody: Spark may want it in any thread.
 */
public class ScanFileIndex implements FileIndex {
  private final DeltalogFileIndex table;
  private final String counts;
  private final boolean isPlain;

  /** A plain scan cannot read files of which not all rows are shown. */
  public ScanFileIndex(DeltalogFileIndex table, String counts, boolean isPlain) {
    this.table = table;
    this.counts = counts;
    this.isPlain = isPlain;
  }

  private TableRoot root() {
    return new TableRoot(table.path(), table.label() + ", " + counts);
  }

  public Seq rootPaths() {
    return scala.jdk.javaapi.CollectionConverters.asScala(Collections.singletonList(root())).toSeq();
  }

  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    PackedListing listed = table.listing(partitionFilters, dataFilters);
    if (isPlain && listed.hasVectors()) {
      throw new IllegalStateException("deltalog: the scan was planned for files without deletion vectors, of which there are some");
    }
    return listed.directories();
  }

  public String[] inputFiles() {
    return table.inputFiles();
  }

  public long sizeInBytes() {
    return table.sizeInBytes();
  }

  public StructType partitionSchema() {
    return table.partitionSchema();
  }

  public void refresh() {}

  public boolean isTimeTravel() {
    return table.isTimeTravel();
  }

  public scala.Option metadataOpsTimeNs() {
    return table.metadataOpsTimeNs();
  }

  /** Ignores the filters, which plans compare themselves. */
  public boolean equals(Object other) {
    return other instanceof ScanFileIndex && table.equals(((ScanFileIndex) other).table);
  }

  public int hashCode() {
    return table.hashCode();
  }

  public String toString() {
    return "deltalog " + root();
  }
}
