package io.deltalog.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Paths;
import java.nio.file.attribute.BasicFileAttributes;
import org.apache.hadoop.fs.Path;

/**
 * Decides which files of a table in the local file system Spark and Hadoop may read and write, by
 * the rule of the core: the root may be a link, but nothing beneath it may be one; and only regular
 * files are read. Spark and Hadoop themselves would follow every link, and would wait for a pipe.
 *
 * <p>The core opens one directory after the other. This class, in contrast, checks a path before
 * Spark opens the file. So it detects links that came with the table, but not links that are
 * changed at the same moment.
 */
final class LocalPlace {
  private static final LinkOption[] UNFOLLOWED = {LinkOption.NOFOLLOW_LINKS};
  private static final LinkOption[] FOLLOWED = {};

  private LocalPlace() {}

  /** Returns whether a Hadoop path is in the local file system. */
  static boolean isLocal(String path) {
    return path.startsWith("file:");
  }

  /** Refuses to read a file of the table with this root if the file or the root breaks the rule. */
  static void checkRead(String root, Path file) {
    if (!isLocal(root)) {
      return;
    }
    BasicFileAttributes found = checkLinks(root, file);
    try {
      String path = file.toUri().getPath();
      // For files outside of the table's root, links are followed, because users must allow such
      // files explicitly.
      found =
          found == null
              ? Files.readAttributes(
                  Paths.get(path, new String[0]), BasicFileAttributes.class, FOLLOWED)
              : found;
    } catch (IOException e) {
      return; // The code that opens the file raises the error.
    }
    if (found.isOther()) {
      String hint = "find out who created it, and remove it";
      throw refused(file, "the path is not a regular file but a pipe, a socket or a device", hint);
    }
  }

  /**
   * Refuses to create a file in the table with the root if a directory above the file is a link.
   */
  static void checkWrite(String root, Path file) {
    if (isLocal(root)) {
      checkLinks(root, file);
    }
  }

  /**
   * Refuses a path that contains a link beneath the root. Returns the attributes of the file; null
   * if it does not exist or is not beneath the root.
   */
  private static BasicFileAttributes checkLinks(String root, Path file) {
    Path top = new Path(root);
    String start = top.isRoot() ? "" : top.toUri().getPath();
    String path = file.toUri().getPath();
    if (!path.startsWith(start + "/")) {
      return null;
    }
    java.nio.file.Path place = Paths.get(start + "/", new String[0]);
    BasicFileAttributes found = null;
    String[] names = path.substring(start.length() + 1).split("/");
    for (String name : names) {
      place = place.resolve(name);
      try {
        found = Files.readAttributes(place, BasicFileAttributes.class, UNFOLLOWED);
      } catch (IOException e) {
        // A new file does not exist yet. For any other file, the code that opens it raises the
        // error.
        return null;
      }
      if (found.isSymbolicLink()) {
        String hint =
            "a table's own path may be a link, but nothing within it: move its target into the"
                + " table";
        throw refused(file, "a symbolic link within a table is not followed: " + place, hint);
      }
    }
    return found;
  }

  private static FileFault refused(Path file, String message, String hint) {
    return new FileFault(FileFault.UNSUPPORTED, message, hint, file, null);
  }
}
