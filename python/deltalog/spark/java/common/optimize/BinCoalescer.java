package io.deltalog.spark;

import java.io.Serializable;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Option;

/**
 * Combines the files of each bin into one partition, in order. In the scan, each file is a separate
 * partition.
 */
public class BinCoalescer implements PartitionCoalescer, Serializable {
  /** The bins, which are only needed in the driver, where partitions are made. */
  private final transient Bins bins;

  public BinCoalescer(Bins bins) {
    this.bins = bins;
  }

  @Override
  public PartitionGroup[] coalesce(int most, RDD<?> scan) {
    Partition[] byNumber = byNumber(scan.partitions());
    PartitionGroup[] groups = new PartitionGroup[bins.count()];
    for (int bin = 0; bin < groups.length; bin++) {
      groups[bin] = new PartitionGroup(Option.empty());
      for (int file = bins.start(bin); file < bins.start(bin + 1); file++) {
        groups[bin].partitions().addOne(byNumber[file]);
      }
    }
    return groups;
  }

  /** Returns the partitions, sorted by the numbers of their files. */
  private Partition[] byNumber(Partition[] partitions) {
    Partition[] byNumber = new Partition[bins.start(bins.count())];
    if (partitions.length != byNumber.length) {
      throw unexpected(partitions.length + " partitions for " + byNumber.length + " files");
    }
    for (Partition partition : partitions) {
      PartitionedFile[] files = ((FilePartition) partition).files();
      if (files.length != 1 || files[0].start() != 0 || files[0].length() != files[0].fileSize()) {
        throw unexpected("a partition that is not one whole file");
      }
      int number = (Integer) FileFacts.of(files[0], FileFacts.NUMBER);
      if (byNumber[number] != null) {
        throw unexpected("the file " + files[0].filePath() + " twice");
      }
      byNumber[number] = partition;
    }
    return byNumber;
  }

  private static IllegalStateException unexpected(String found) {
    return new IllegalStateException(
        "deltalog cannot use the scans of this version of Spark: it has made " + found);
  }
}
