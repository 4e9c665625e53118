package io.deltalog.spark;

import java.nio.ByteBuffer;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.Map;

/**
 * The files of a directory, in the bytes that the planner packed, unpacked one by one each time that somebody
 * walks over them. Like Scala's List it is meant to be walked.
 *
 * Big endian: i64 size, i64 modification time, i32 length and the path, u8 facts, and of those whose bit is
 * set: 1 the rows that are not shown, a vector; 2 the only rows that are shown, a vector; 4 the change type
 * of all rows, i32 length and text; 8 i64 the first row's id, i64 the version that added the rows; 16 nothing
 * more: the path is whole and not below the root. A vector is i64 cardinality and u8 place; 0: i32 length and
 * the vector; else i32 length and the path (1: below the root, 2: absolute), i64 offset, i32 size.
 */
public final class PackedFiles extends AbstractSeq {
  private static final Map NO_FACTS = scala.collection.immutable.Map$.MODULE$.empty();
  private final ByteBuffer bytes;
  private final int count;
  private final PackedRoot root;

  /** The buffer belongs to this object. */
  public PackedFiles(ByteBuffer bytes, int count, PackedRoot root) {
    this.bytes = bytes;
    this.count = count;
    this.root = root;
  }

  public int length() {
    return count;
  }

  public Iterator iterator() {
    return new Files((ByteBuffer) bytes.duplicate(), count, root);
  }

  public Object apply(int index) {
    if (index < 0 || index >= count) {
      throw new IndexOutOfBoundsException(String.valueOf(index));
    }
    return iterator().drop(index).next();
  }

  /** The same as a function. */
  public Object apply(Object index) {
    return apply(((Integer) index).intValue());
  }

  private static final class Files extends AbstractIterator {
    private final ByteBuffer bytes;
    private final PackedRoot root;
    private int left;

    Files(ByteBuffer bytes, int count, PackedRoot root) {
      this.bytes = bytes;
      this.left = count;
      this.root = root;
    }

    public boolean hasNext() {
      return left > 0;
    }

    public Object next() {
      if (left == 0) {
        throw new java.util.NoSuchElementException();
      }
      left--;
      long size = bytes.getLong();
      long modified = bytes.getLong();
      int at = bytes.position();
      int length = bytes.getInt();
      bytes.position(at + 4 + length);
      int which = bytes.get();
      return new FileStatusWithMetadata(new PackedFile(size, modified, bytes, at, (which & 16) != 0 ? null : root), facts(which));
    }

    /** What else is known of the file, for the task that reads it. */
    private Map facts(int which) {
      if (which == 0) {
        return NO_FACTS;
      }
      Map facts = NO_FACTS;
      if ((which & 1) != 0) {
        facts = (Map) facts.updated(FileFacts.WITHOUT_ROWS, vector());
      }
      if ((which & 2) != 0) {
        facts = (Map) facts.updated(FileFacts.ONLY_ROWS, vector());
      }
      if ((which & 4) != 0) {
        facts = (Map) facts.updated(FileFacts.CHANGE_TYPE, PackedValues.text(bytes));
      }
      if ((which & 8) != 0) {
        facts = (Map) facts.updated(FileFacts.BASE_ROW_ID, Long.valueOf(bytes.getLong()));
        facts = (Map) facts.updated(FileFacts.DEFAULT_ROW_COMMIT_VERSION, Long.valueOf(bytes.getLong()));
      }
      return facts;
    }

    private VectorPlace vector() {
      long cardinality = bytes.getLong();
      int place = bytes.get();
      if (place == 0) {
        return new VectorPlace(PackedValues.raw(bytes), cardinality);
      }
      String path = PackedValues.text(bytes);
      long offset = bytes.getLong();
      return new VectorPlace(place == 1 ? root.text(path) : path, offset, bytes.getInt(), cardinality);
    }
  }
}
