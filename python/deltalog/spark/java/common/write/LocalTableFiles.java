package io.deltalog.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, changed to set the permissions of new files within the JVM.
 *
 * <p>Without its native library, which is the usual case, Hadoop starts a `chmod` process for each
 * file and for its checksum file. That takes longer than writing a small file.
 */
public final class LocalTableFiles extends LocalFileSystem {
  private static final String CLASS = "fs.file.impl";

  /** The bits of a file's mode for setuid, setgid, and sticky. */
  private static final int SPECIAL_BITS = 07000;

  /** Creates the file system. Hadoop calls this. */
  public LocalTableFiles() {
    super(new Raw());
  }

  /** Sets up the local file system of a job that writes files, unless the user has chosen one. */
  static Configuration in(Configuration job) {
    if (job.getClass(CLASS, LocalFileSystem.class) == LocalFileSystem.class) {
      job.setClass(CLASS, LocalTableFiles.class, LocalFileSystem.class);
      // Otherwise Hadoop would cache it for everything else in the process.
      job.setBoolean("fs.file.impl.disable.cache", true);
    }
    return job;
  }

  private static final class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      java.nio.file.Path file = pathToFile(path).toPath();
      if (permission.getStickyBit() || !isPlain(file)) {
        super.setPermission(path, permission);
        return;
      }
      String text =
          permission.getUserAction().SYMBOL
              + permission.getGroupAction().SYMBOL
              + permission.getOtherAction().SYMBOL;
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(text));
    }

    /**
     * Returns whether a file only has permissions that Java knows. Java would remove others, which
     * `chmod` keeps. An example is the setgid bit of a directory, by which everything in the
     * directory gets its group.
     */
    private static boolean isPlain(java.nio.file.Path file) throws IOException {
      return file.getFileSystem().supportedFileAttributeViews().contains("unix")
          && ((Integer) Files.getAttribute(file, "unix:mode") & SPECIAL_BITS) == 0;
    }
  }
}
