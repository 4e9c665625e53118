package io.deltalog.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.roaringbitmap.RoaringBitmap;

/**
 * The result of one attempt of a task, encoded as the core's `write::task_report` describes.
 *
 * <p>Only bytes are sent to the driver, so neither its class loaders nor the serializer that users
 * have chosen matter.
 */
public class TaskReport {
  private static final int VERSION = 1;
  public static final int DATA_FILE = 1;
  private static final int REMOVED_ROWS = 2;
  private static final int ROW_COUNTS = 3;

  /**
   * Marks rows of a MERGE's source that have matched, for the driver: i64 key, and a bitmap
   * (ChangedRows).
   */
  public static final int MATCHED_ROWS = 4;

  public static final int CHANGE_FILE = 5;
  private static final int STAYING_ROWS = 6;
  private static final int BIN = 7;
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final DataOutputStream out = new DataOutputStream(bytes);

  public TaskReport() throws IOException {
    out.writeByte(VERSION);
  }

  /**
   * Adds a complete file of some kind, with its path in the table and its partition values as
   * strings.
   */
  public void addFile(int kind, String path, List<String> partitionValues, WrittenFile file)
      throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    DataOutputStream record = new DataOutputStream(content);
    write(record, path);
    record.writeLong(file.size());
    record.writeLong(file.modified());
    record.writeLong(file.rows());
    record.writeInt(partitionValues.size());
    for (String partitionValue : partitionValues) {
      record.writeByte(partitionValue == null ? 0 : 1);
      if (partitionValue != null) {
        write(record, partitionValue);
      }
    }
    record.write(file.footer());
    add(kind, content);
  }

  /**
   * Adds rows that are removed: the key is the number of their file and the upper half of their
   * positions.
   */
  public void addRemoved(long key, RoaringBitmap rows) throws IOException {
    addRows(REMOVED_ROWS, key, rows);
  }

  /** Adds rows of the source that have matched. */
  public void addMatched(long key, RoaringBitmap rows) throws IOException {
    addRows(MATCHED_ROWS, key, rows);
  }

  /** Adds rows of the target that match a row of the source and are not removed. */
  public void addStaying(long key, RoaringBitmap rows) throws IOException {
    addRows(STAYING_ROWS, key, rows);
  }

  private void addRows(int kind, long key, RoaringBitmap rows) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    DataOutputStream record = new DataOutputStream(content);
    record.writeLong(key);
    rows.serialize(record);
    add(kind, content);
  }

  /**
   * Adds the contents of a bin that the task with this number has written: the numbers of the old
   * files that have rows in the bin, in their order, and how many rows each of them has.
   */
  public void addBin(int task, int[] files, long[] rows, int count) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    DataOutputStream record = new DataOutputStream(content);
    record.writeInt(task);
    for (int i = 0; i < count; i++) {
      record.writeInt(files[i]);
      record.writeLong(rows[i]);
    }
    add(BIN, content);
  }

  /** Adds the counts of rows, in the order in which the core reads them. */
  public void addCounts(long[] counts) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    DataOutputStream record = new DataOutputStream(content);
    for (long count : counts) {
      record.writeLong(count);
    }
    add(ROW_COUNTS, content);
  }

  private void add(int kind, ByteArrayOutputStream content) throws IOException {
    out.writeByte(kind);
    out.writeInt(content.size());
    content.writeTo(out);
  }

  public byte[] toBytes() {
    return bytes.toByteArray();
  }

  private static void write(DataOutputStream record, String text) throws IOException {
    byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
    record.writeInt(utf8.length);
    record.write(utf8);
  }
}
