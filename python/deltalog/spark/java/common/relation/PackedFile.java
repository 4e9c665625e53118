package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * A file of a packed listing. Its path is created on demand, because paths take much time and
 * memory.
 */
public final class PackedFile extends FileStatus {
  private static final long BLOCK = 134217728L;
  private static final FsPermission PERMISSION = FsPermission.getFileDefault();
  private static final Path NONE = new Path("/");
  private final transient ByteBuffer bytes;
  private final transient int at;
  private final transient PackedRoot root;
  private final transient boolean isOutside;

  /**
   * Creates the file from the bytes at the position: an i32 length, and the path, which is relative
   * to the root or complete.
   */
  public PackedFile(
      long size, long modified, ByteBuffer bytes, int at, PackedRoot root, boolean isOutside) {
    super(size, false, 1, BLOCK, modified, 0, PERMISSION, null, null, NONE);
    this.bytes = bytes;
    this.at = at;
    this.root = root;
    this.isOutside = isOutside;
  }

  @Override
  public Path getPath() {
    byte[] path = new byte[bytes.getInt(at)];
    bytes.get(at + 4, path);
    return isOutside
        ? new Path(root.outside(new String(path, StandardCharsets.UTF_8)))
        : root.child(path);
  }
}
