package io.deltalog.spark;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/** The root of a packed listing, below which its files lie. */
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

  /** As a Hadoop path, which is not encoded. */
  public PackedRoot(String path) {
    this.path = path;
    this.encoded = new Path(path).toUri().toString();
  }

  /** The Hadoop path, as text, of a decoded path below the root. */
  public String text(String relative) {
    return path + "/" + relative;
  }

  /**
   * The same as an object. Hadoop takes several times as long to make one of text, which it encodes, as of a
   * URI; to most paths encoding does nothing.
   */
  public Path child(byte[] relative) {
    for (int i = 0; i < relative.length; i++) {
      if (relative[i] < 0 || !PLAIN[relative[i]]) {
        return new Path(text(new String(relative, StandardCharsets.UTF_8)));
      }
    }
    return new Path(URI.create(encoded + "/" + new String(relative, StandardCharsets.ISO_8859_1)));
  }
}
