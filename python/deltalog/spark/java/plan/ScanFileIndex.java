package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * The file index of a snapshot as one scan has it: it knows the scan's filters, so that its text says how
 * many of the table's files are read.
 *
 * Spark fixes the text of a plan before it lists files. So the text lists them, and the scan takes that
 * listing over.
 */
public class ScanFileIndex implements FileIndex {
  private final DeltalogFileIndex table;
  private final Seq partitionFilters;
  private final Seq dataFilters;
  private final boolean isPlain;

  /**
   * The filters are those that Spark lists files with: without subqueries, whose results are not known before
   * the query runs. A plain scan cannot read files of which not all rows are shown.
   */
  public ScanFileIndex(DeltalogFileIndex table, Seq partitionFilters, Seq dataFilters, boolean isPlain) {
    this.table = table;
    this.partitionFilters = partitionFilters;
    this.dataFilters = dataFilters;
    this.isPlain = isPlain;
  }

  private String label() {
    String label = table.label();
    try {
      return label + ", " + table.known(partitionFilters, dataFilters).counts;
    } catch (DeltalogException e) {
      return label + ", files unknown"; // The scan says why.
    }
  }

  public Seq rootPaths() {
    Object root = new Root(table.path(), this);
    return scala.jdk.javaapi.CollectionConverters.asScala(Collections.singletonList(root)).toSeq();
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

  /** Of the filters plans are compared by themselves. */
  public boolean equals(Object other) {
    return other instanceof ScanFileIndex && table.equals(((ScanFileIndex) other).table);
  }

  public int hashCode() {
    return table.hashCode();
  }

  public String toString() {
    return "deltalog " + new Root(table.path(), this);
  }

  /** The root with the counts in its text. */
  public static final class Root extends TableRoot {
    private final ScanFileIndex index;

    public Root(String path, ScanFileIndex index) {
      super(path, "");
      this.index = index;
    }

    protected String label() {
      return index.label();
    }
  }
}
