package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/**
 * The files of a scan, as the planner has packed them. The number of Java objects does not depend
 * on the number of files, because a directory unpacks its files only when Spark iterates over them.
 *
 * <p>Big endian: i32 length and version of the wheel; i64 number of files of the snapshot; u8
 * whether a listed file has a vector; i32 length and path of the root; i32 number of directories.
 * Each directory is its partition row (per column u8 present and the value in Catalyst's form), i32
 * number of files, i64 their size in bytes, i32 length of the packed files, and the files as in
 * PackedFiles.
 */
public class PackedListing {
  private final List<PartitionDirectory> directories = new ArrayList<>();
  private final long total;
  private final boolean hasVectors;
  private int count = 0;
  private long size = 0;

  /**
   * Unpacks a listing. The given root is the table's path for Hadoop; the packed root is the same
   * location with the core's URL scheme.
   */
  public PackedListing(
      ByteBuffer bytes, StructType partitionSchema, PartitionFilter filter, PackedRoot root) {
    PackedValues packed = PackedValues.ofThisVersion(bytes);
    this.total = bytes.getLong();
    this.hasVectors = bytes.get() != 0;
    packed.text();
    for (int left = packed.count(); left > 0; left--) {
      InternalRow partition = packed.row(partitionSchema);
      int files = packed.count();
      long bytesOfFiles = bytes.getLong();
      ByteBuffer described = packed.part();
      if (filter.keeps(partition)) {
        count += files;
        size += bytesOfFiles;
        directories.add(
            new PartitionDirectory(
                partition, Unchecked.cast(new PackedFiles(described, files, root))));
      }
    }
  }

  /** Returns the number of listed files. */
  public int count() {
    return count;
  }

  /** Returns the size of the listed files in bytes. */
  public long size() {
    return size;
  }

  /** Returns whether some listed files may have deleted rows. */
  public boolean hasVectors() {
    return hasVectors;
  }

  /** Returns the number of files of the snapshot. */
  public long total() {
    return total;
  }

  public scala.collection.immutable.Seq<PartitionDirectory> directories() {
    return Plans.seq(directories);
  }

  public String[] paths() {
    String[] paths = new String[count];
    int next = 0;
    for (PartitionDirectory directory : directories) {
      for (FileStatusWithMetadata fileStatusWithMetadata : Plans.each(directory.files())) {
        paths[next++] = fileStatusWithMetadata.getPath().toUri().toString();
      }
    }
    return paths;
  }
}
