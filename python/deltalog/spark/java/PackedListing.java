package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/**
 * The files of a scan as the planner packs them, unpacked into Spark's form.
 *
 * Big endian: i64 files of the snapshot; i32 P, P partition rows (per column u8 present and the value in Catalyst's form); i32 length and the root's path; i32 B
 * bitmaps, each i32 length and what RowSelection takes; i32 D directories, each i32 partition row, i32 F, and F files: i64 size, i64
 * modification time, u8 relative, i32 length and the path, u8 rows: 0 all, 1 without those of a bitmap, 2 only those; then i32 which bitmap; i32
 * length and the change type of all rows, else empty; u8 ids, then i64 the first row's id and i64 the version that added the rows.
 */
public class PackedListing extends PackedValues {
  private static final scala.collection.immutable.Map NO_FACTS = scala.collection.immutable.Map$.MODULE$.empty();
  private final byte[][] bitmaps;
  private final List directories = new ArrayList();
  private final List listed = new ArrayList();
  private final long total;
  private int files = 0;

  public PackedListing(byte[] bytes, StructType partitionSchema, PartitionFilter filter) {
    super(bytes);
    total = buffer.getLong();
    InternalRow[] partitions = new InternalRow[buffer.getInt()];
    boolean[] kept = new boolean[partitions.length];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = row(partitionSchema);
      kept[i] = filter.keeps(partitions[i]);
    }
    String root = text();
    bitmaps = new byte[buffer.getInt()][];
    for (int i = 0; i < bitmaps.length; i++) {
      bitmaps[i] = raw();
    }
    for (int left = buffer.getInt(); left > 0; left--) {
      int partition = buffer.getInt();
      List described = new ArrayList();
      FileStatus[] members = new FileStatus[buffer.getInt()];
      for (int i = 0; i < members.length; i++) {
        members[i] = file(root);
        described.add(new FileStatusWithMetadata(members[i], facts()));
      }
      if (!kept[partition]) {
        continue;
      }
      files += members.length;
      listed.add(members);
      directories.add(new PartitionDirectory(partitions[partition], scala.jdk.javaapi.CollectionConverters.asScala(described).toSeq()));
    }
  }

  /** How many files are listed. */
  public int files() {
    return files;
  }

  /** How many files the snapshot has. */
  public long total() {
    return total;
  }

  public scala.collection.immutable.Seq directories() {
    return scala.jdk.javaapi.CollectionConverters.asScala(directories).toSeq();
  }

  public String[] paths() {
    String[] paths = new String[files];
    int next = 0;
    for (int i = 0; i < listed.size(); i++) {
      FileStatus[] members = (FileStatus[]) listed.get(i);
      for (int j = 0; j < members.length; j++) {
        paths[next++] = members[j].getPath().toUri().toString();
      }
    }
    return paths;
  }

  private FileStatus file(String root) {
    long size = buffer.getLong();
    long modified = buffer.getLong();
    boolean relative = buffer.get() != 0;
    String path = text();
    Path whole = new Path(relative ? root + "/" + path : path);
    return new FileStatus(size, false, 1, 134217728L, modified, whole);
  }

  /** What else is known of the file, for the task that reads it. */
  private scala.collection.immutable.Map facts() {
    scala.collection.immutable.Map facts = NO_FACTS;
    int shown = buffer.get();
    if (shown != 0) {
      facts = (scala.collection.immutable.Map) facts.updated(shown == 1 ? FileFacts.WITHOUT_ROWS : FileFacts.ONLY_ROWS, bitmaps[buffer.getInt()]);
    }
    String changeType = text();
    if (!changeType.isEmpty()) {
      facts = (scala.collection.immutable.Map) facts.updated(FileFacts.CHANGE_TYPE, changeType);
    }
    if (buffer.get() != 0) {
      facts = (scala.collection.immutable.Map) facts.updated(FileFacts.BASE_ROW_ID, Long.valueOf(buffer.getLong()));
      facts = (scala.collection.immutable.Map) facts.updated(FileFacts.DEFAULT_ROW_COMMIT_VERSION, Long.valueOf(buffer.getLong()));
    }
    return facts;
  }
}
