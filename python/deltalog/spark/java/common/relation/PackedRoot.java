package io.deltalog.spark;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/** The root directory of a packed listing. */
public final class PackedRoot {
  private static final boolean[] PLAIN = new boolean[128];

  static {
    String plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=/";
    for (int i = 0; i < plain.length(); i++) {
      PLAIN[plain.charAt(i)] = true;
    }
  }

  private final String path;
  private final String encoded;
  private final String scheme;

  /** Creates the root; path is a Hadoop path, which is not URI-encoded. */
  public PackedRoot(String path) {
    this.path = path;
    this.encoded = new Path(path).toUri().toString();
    this.scheme = path.substring(0, path.indexOf(':'));
  }

  /** Returns the Hadoop path, as a string, of a decoded path below the root. */
  public String text(String relative) {
    return path + "/" + relative;
  }

  /** Returns a complete path in the root's store, with the URL scheme of the root. */
  public String outside(String path) {
    return scheme + path.substring(path.indexOf(':'));
  }

  /**
   * Returns the Hadoop path of a packed path below the root. Creating a path from a string, which
   * Hadoop encodes, takes several times as long as creating it from a URI. Most paths do not change
   * when they are encoded.
   */
  public Path child(byte[] relative) {
    for (byte each : relative) {
      if (each < 0 || !PLAIN[each]) {
        return new Path(text(new String(relative, StandardCharsets.UTF_8)));
      }
    }
    return new Path(URI.create(encoded + "/" + new String(relative, StandardCharsets.ISO_8859_1)));
  }
}
