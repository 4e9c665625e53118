package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;

/**
 * The files of a scan as the planner packs them. The objects made of them here do not grow with their number:
 * a directory unpacks its files when Spark walks over them.
 *
 * Big endian: i32 length and the version of the wheel; i64 files of the snapshot; u8 whether a file here has a
 * vector; i32 length and the root's path; i32 D directories, each the partition row (per column u8 present and the value in Catalyst's form), i32 F
 * files, i32 length of them, and the files as PackedFiles has them.
 */
public class PackedListing {
  private final List directories = new ArrayList();
  private final long total;
  private final boolean hasVectors;
  private int count = 0;

  public PackedListing(ByteBuffer bytes, StructType partitionSchema, PartitionFilter filter) {
    PackedValues packed = PackedValues.ofThisVersion(bytes);
    this.total = bytes.getLong();
    this.hasVectors = bytes.get() != 0;
    PackedRoot root = new PackedRoot(packed.text());
    for (int left = packed.count(); left > 0; left--) {
      InternalRow partition = packed.row(partitionSchema);
      int files = packed.count();
      ByteBuffer described = packed.part();
      if (filter.keeps(partition)) {
        count += files;
        directories.add(new PartitionDirectory(partition, new PackedFiles(described, files, root)));
      }
    }
  }

  /** Returns how many files are listed. */
  public int count() {
    return count;
  }

  /** Returns whether there may be a file of which not all rows are shown. */
  public boolean hasVectors() {
    return hasVectors;
  }

  /** Returns how many files the snapshot has. */
  public long total() {
    return total;
  }

  public scala.collection.immutable.Seq directories() {
    return scala.jdk.javaapi.CollectionConverters.asScala(directories).toSeq();
  }

  public String[] paths() {
    String[] paths = new String[count];
    int next = 0;
    for (int i = 0; i < directories.size(); i++) {
      Iterator files = ((PartitionDirectory) directories.get(i)).files().iterator();
      while (files.hasNext()) {
        paths[next++] = ((FileStatusWithMetadata) files.next()).getPath().toUri().toString();
      }
    }
    return paths;
  }
}
