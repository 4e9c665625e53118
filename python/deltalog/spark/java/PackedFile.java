package io.deltalog.spark;

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** A file of a packed listing. Its path, which is dear to make and to keep, is made when it is asked for. */
public final class PackedFile extends FileStatus {
  private static final long BLOCK = 134217728L;
  private static final FsPermission PERMISSION = FsPermission.getFileDefault();
  private static final Path NONE = new Path("/");
  private final transient ByteBuffer bytes;
  private final transient int at;
  private final transient String prefix;

  /** At a position of the bytes stand i32 length and the path, without the prefix. */
  public PackedFile(long size, long modified, ByteBuffer bytes, int at, String prefix) {
    super(size, false, 1, BLOCK, modified, 0, PERMISSION, null, null, NONE);
    this.bytes = bytes;
    this.at = at;
    this.prefix = prefix;
  }

  public Path getPath() {
    int length = bytes.getInt(at);
    byte[] path = new byte[length];
    for (int i = 0; i < length; i++) {
      path[i] = bytes.get(at + 4 + i);
    }
    return new Path(prefix + new String(path, StandardCharsets.UTF_8));
  }
}
