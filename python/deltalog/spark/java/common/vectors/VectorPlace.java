package io.deltalog.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/**
 * The location of a deletion vector. The planner sends it with the data file to the task that reads
 * both. (PROTOCOL, "Deletion Vector File Storage Format".)
 *
 * <pre>
 *   u8 version 1 | u32 size, the vector, u32 CRC-32 | u32 size, the vector, u32 CRC-32 | ...
 *                ^ offset 1                         ^ offset of the second
 * </pre>
 *
 * Integers outside the vectors are big endian. Only the bytes of the vector are read from a file
 * with many vectors. Memory is allocated as bytes arrive.
 */
public class VectorPlace implements Serializable {
  private static final int VERSION = 1;
  private final byte[] inline;
  private final String path;
  private final long offset;
  private final int size;
  private final long cardinality;

  /** Creates the location of a vector that is stored in the log. */
  public VectorPlace(byte[] inline, long cardinality) {
    this(inline, null, 0, inline.length, cardinality);
  }

  /** Creates the location of a vector in the file at the path. */
  public VectorPlace(String path, long offset, int size, long cardinality) {
    this(null, path, offset, size, cardinality);
  }

  private VectorPlace(byte[] inline, String path, long offset, int size, long cardinality) {
    this.inline = inline;
    this.path = path;
    this.offset = offset;
    this.size = size;
    this.cardinality = cardinality;
  }

  /** Reads the vector, which belongs to the given data file of the table with the root. */
  public DeletionVector read(String root, Path dataFile, Configuration configuration) {
    if (inline == null) {
      LocalPlace.checkRead(root, new Path(path));
    }
    String kind = FileFault.CORRUPT;
    Exception cause;
    try {
      return new DeletionVector(inline == null ? fromFile(configuration) : inline, cardinality);
    } catch (MalformedVector e) {
      cause = e;
    } catch (UnsupportedOperationException e) {
      kind = FileFault.UNSUPPORTED;
      cause = e;
    } catch (FileNotFoundException e) {
      kind = FileFault.MISSING;
      cause = e;
    } catch (IOException e) {
      kind = FileFault.UNAVAILABLE;
      cause = e;
    }
    String place = inline == null ? "'" + path + "' at " + offset : "in the log";
    String message = "the deletion vector " + place + " cannot be read: " + cause.getMessage();
    throw new FileFault(kind, message, hint(kind), dataFile, cause);
  }

  private byte[] fromFile(Configuration configuration) throws IOException, MalformedVector {
    Path file = new Path(path);
    FSDataInputStream in = file.getFileSystem(configuration).open(file);
    try {
      int version = in.read();
      if (version < 0) {
        throw new MalformedVector("the file is empty");
      }
      if (version != VERSION) {
        throw new UnsupportedOperationException(
            "the file has version " + version + " of the deletion vector format");
      }
      in.seek(offset);
      int stored = in.readInt();
      if (stored != size) {
        throw new MalformedVector(
            "the vector has " + (stored & 0xffffffffL) + " bytes, but its descriptor says " + size);
      }
      byte[] vector = in.readNBytes(size);
      int checksum = in.readInt();
      CRC32 crc = new CRC32();
      crc.update(vector, 0, vector.length);
      if ((int) crc.getValue() != checksum) {
        throw new MalformedVector("the vector's checksum is wrong");
      }
      return vector;
    } catch (java.io.EOFException e) {
      throw new MalformedVector("the vector is truncated");
    } finally {
      in.close();
    }
  }

  private static String hint(String kind) {
    if (kind.equals(FileFault.MISSING)) {
      return FileFault.MISSING_HINT;
    }
    return kind.equals(FileFault.CORRUPT)
        ? "restore the vector's file, or read a version before it was written"
        : null;
  }
}
