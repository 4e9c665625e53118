package io.deltalog.spark;

import java.nio.ByteBuffer;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.SeqFactory;
import scala.collection.immutable.AbstractSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq$;

/**
 * The files of a directory, as the planner has packed them. They are unpacked one by one during
 * each iteration. As with Scala's List, iteration is fast and access by index is slow.
 *
 * <p>Big endian: i64 size, i64 modification time, i32 length and path, u8 flags, and then a field
 * for each flag:
 *
 * <pre>
 *    1  the rows that are not shown: a vector
 *    2  the only rows that are shown: a vector
 *    4  the change type of all rows: i32 length and text
 *    8  row tracking: i64 id of the first row, i64 version that added the rows
 *   16  no field: the path is complete instead of relative to the root
 *   32  i32 number of the file in the plan of a statement that changes rows
 * </pre>
 *
 * A vector is i64 cardinality and u8 place. Place 0 is followed by i32 length and the vector; place
 * 1 (below the root) and 2 (absolute) by i32 length and path, i64 offset, i32 size.
 */
@SuppressWarnings({"rawtypes", "unchecked"}) // Java cannot state the type of iterableFactory.
public final class PackedFiles extends AbstractSeq {
  private static final Map<String, Object> NO_FACTS =
      scala.collection.immutable.Map$.MODULE$.empty();
  private final ByteBuffer bytes;
  private final int count;
  private final PackedRoot root;

  /** Takes ownership of the buffer; the caller must not use it any more. */
  public PackedFiles(ByteBuffer bytes, int count, PackedRoot root) {
    this.bytes = bytes;
    this.count = count;
    this.root = root;
  }

  @Override
  public int length() {
    return count;
  }

  @Override
  public Iterator<FileStatusWithMetadata> iterator() {
    return new Files(bytes.duplicate(), count, root);
  }

  @Override
  public FileStatusWithMetadata apply(int index) {
    if (index < 0 || index >= count) {
      throw new IndexOutOfBoundsException(String.valueOf(index));
    }
    return iterator().drop(index).next();
  }

  /** Returns the file at an index; Scala calls this when the list is used as a function. */
  @Override
  public FileStatusWithMetadata apply(Object index) {
    return apply(((Integer) index).intValue());
  }

  @Override
  public SeqFactory iterableFactory() {
    return (SeqFactory) Seq$.MODULE$;
  }

  @Override
  public boolean isDefinedAt(Object index) {
    return isDefinedAt(((Integer) index).intValue());
  }

  private static final class Files extends AbstractIterator<FileStatusWithMetadata> {
    private final ByteBuffer bytes;
    private final PackedRoot root;
    private int left;

    Files(ByteBuffer bytes, int count, PackedRoot root) {
      this.bytes = bytes;
      this.left = count;
      this.root = root;
    }

    @Override
    public boolean hasNext() {
      return left > 0;
    }

    @Override
    public FileStatusWithMetadata next() {
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
      PackedFile file = new PackedFile(size, modified, bytes, at, root, (which & 16) != 0);
      return new FileStatusWithMetadata(file, facts(which));
    }

    /** Unpacks the facts about the file, for the task that reads the file. */
    private Map<String, Object> facts(int which) {
      if (which == 0) {
        return NO_FACTS;
      }
      Map<String, Object> facts = NO_FACTS;
      if ((which & 1) != 0) {
        facts = facts.updated(FileFacts.WITHOUT_ROWS, vector());
      }
      if ((which & 2) != 0) {
        facts = facts.updated(FileFacts.ONLY_ROWS, vector());
      }
      if ((which & 4) != 0) {
        facts = facts.updated(FileFacts.CHANGE_TYPE, PackedValues.text(bytes));
      }
      if ((which & 8) != 0) {
        facts = facts.updated(FileFacts.BASE_ROW_ID, Long.valueOf(bytes.getLong()));
        facts = facts.updated(FileFacts.DEFAULT_ROW_COMMIT_VERSION, Long.valueOf(bytes.getLong()));
      }
      if ((which & 32) != 0) {
        facts = facts.updated(FileFacts.NUMBER, Integer.valueOf(bytes.getInt()));
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
      return new VectorPlace(
          place == 1 ? root.text(path) : root.outside(path), offset, bytes.getInt(), cardinality);
    }
  }
}
