package io.deltalog.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.VersionInfo;
import org.apache.spark.sql.SparkSession;

/**
 * Converts between Hadoop paths, which are not escaped, and URLs. The core uses one URL scheme for
 * each store, and Hadoop has several.
 */
public class Locations {
  private static final String[] S3 = {"s3", "s3a"};
  private static final String[] S3_SETTINGS = {
    "fs.s3a.", "spark.delta.logStore.", "spark.io.delta.storage.S3DynamoDBLogStore."
  };
  private static final String[] GS = {"gs"};
  private static final String[] GS_SETTINGS = {"fs.gs.", "google.cloud."};
  private static final String[] AZURE = {"abfss"};
  private static final String[] AZURE_SETTINGS = {"fs.azure."};
  private static final String[] HDFS = {"hdfs"};
  // Hadoop's settings for logging in to HDFS that the core's client supports. Hadoop's other
  // settings for HDFS are secrets, or concern servers.
  private static final String[] HDFS_SETTINGS = {
    "dfs.ha.namenodes.",
    "dfs.namenode.rpc-address.",
    "dfs.client.failover.",
    "dfs.client.use.datanode.hostname",
    "dfs.client.socket-timeout",
    "dfs.client.block.write.replace-datanode-on-failure.",
    "dfs.data.transfer.protection",
    "hadoop.security.authentication",
    "spark.kerberos.keytab",
    "spark.kerberos.principal"
  };
  // Hadoop's default port. A name service, which stands for several name nodes, has no port.
  private static final int HDFS_PORT = 8020;

  private static final List<String> DEFAULTS = List.of("core-default.xml", "hdfs-default.xml");

  private Locations() {}

  /**
   * Returns a JSON object about a path. It contains the path's URL. For a path in a store, it also
   * contains the scheme with which Hadoop accesses the store (null if Hadoop has no file system
   * class for it) and Hadoop's settings for stores of this kind. In HDFS it contains the user name
   * with which the session accesses the name node, or null if that is the logged-in user.
   *
   * <p>A path without a scheme is in Hadoop's default file system. A relative path is resolved
   * against its working directory. Throws an IllegalArgumentException if the text is not a path,
   * and an IllegalStateException if Hadoop has no file system for it.
   */
  public static String describe(SparkSession session, String text) {
    Path path = new Path(text);
    Configuration settings = settings(session);
    if (path.toUri().getScheme() == null) {
      URI store = FileSystem.getDefaultUri(settings);
      if (store.getScheme().equals("file") || (isHdfs(store) && !path.isAbsolute())) {
        path = qualified(path, settings);
      } else if (path.isAbsolute()) {
        path = new Path(store.getScheme(), store.getAuthority(), path.toUri().getPath());
      } else {
        throw new IllegalStateException("a relative path needs a working directory");
      }
    } else if (path.toUri().getScheme().equalsIgnoreCase("file")) {
      path = qualified(path, settings);
    }
    if (isHdfs(path.toUri())) {
      path = inHdfs(path, settings);
    }
    Map<String, Object> described = new HashMap<>();
    described.put("url", path.toUri().toString());
    String scheme = path.toUri().getScheme();
    described.put("scheme", scheme.equalsIgnoreCase("file") ? scheme : hadoop(scheme, settings));
    described.put("settings", chosen(settings, settingsOf(scheme)));
    described.put("hadoop_version", VersionInfo.getVersion());
    described.put("user", isHdfs(path.toUri()) ? user() : null);
    return Json.text(described);
  }

  private static boolean isHdfs(URI uri) {
    return "hdfs".equalsIgnoreCase(uri.getScheme());
  }

  /**
   * Returns a path in HDFS with the host and port of the name node, or with the name of a name
   * service.
   */
  private static Path inHdfs(Path path, Configuration settings) {
    URI uri = path.toUri();
    String authority = uri.getAuthority();
    if (authority == null) {
      URI store = FileSystem.getDefaultUri(settings);
      if (!isHdfs(store) || store.getAuthority() == null) {
        throw new IllegalArgumentException(
            "it names no name node, and fs.defaultFS is not in HDFS; write hdfs://host:port/path");
      }
      authority = store.getAuthority();
    }
    boolean isName =
        authority.indexOf(':') >= 0 || settings.get("dfs.ha.namenodes." + authority) != null;
    return new Path("hdfs", isName ? authority : authority + ":" + HDFS_PORT, uri.getPath());
  }

  private static String user() {
    try {
      UserGroupInformation user = UserGroupInformation.getCurrentUser();
      boolean isNamed = !UserGroupInformation.isSecurityEnabled() || user.getRealUser() != null;
      return isNamed ? user.getShortUserName() : null;
    } catch (IOException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
  }

  private static Path qualified(Path path, Configuration settings) {
    try {
      return path.getFileSystem(settings).makeQualified(path);
    } catch (IOException | IllegalArgumentException e) {
      throw new IllegalStateException(e.getMessage(), e);
    }
  }

  /** Returns the path of a URL. */
  public static String path(String url) {
    try {
      return new Path(new URI(url)).toString();
    } catch (URISyntaxException e) {
      throw new IllegalArgumentException(e);
    }
  }

  /**
   * Converts a URL with the core's scheme for the store to a path with the scheme that the
   * session's Hadoop uses.
   */
  public static String path(SparkSession session, String url) {
    String path = path(url);
    int colon = path.indexOf(':');
    String scheme = path.substring(0, colon);
    if (scheme.equals("file")) {
      return path;
    }
    String known = hadoop(scheme, settings(session));
    return known == null ? path : known + path.substring(colon);
  }

  /**
   * Returns the name of a file or directory in the directory at a URL; null if there is none.
   * Hidden entries, such as a log, are ignored.
   */
  public static String anyFile(SparkSession session, String url) throws IOException {
    Path path = new Path(path(session, url));
    try {
      RemoteIterator<FileStatus> files =
          path.getFileSystem(settings(session)).listStatusIterator(path);
      while (files.hasNext()) {
        String name = files.next().getPath().getName();
        if (!name.startsWith("_") && !name.startsWith(".")) {
          return name;
        }
      }
    } catch (FileNotFoundException e) {
      return null;
    }
    return null;
  }

  private static Configuration settings(SparkSession session) {
    return ((org.apache.spark.sql.classic.SparkSession) session).sessionState().newHadoopConf();
  }

  /**
   * Returns the scheme with which Hadoop accesses a store; null if it has no file system class for
   * it.
   */
  private static String hadoop(String scheme, Configuration settings) {
    for (String name : names(scheme)) {
      try {
        FileSystem.getFileSystemClass(name, settings);
        return name;
      } catch (IOException | RuntimeException e) {
        // There is no class of this name, or the class that the settings name is missing. Hadoop
        // itself handles both cases in the same way.
      }
    }
    return null;
  }

  private static String[] names(String scheme) {
    String lower = scheme.toLowerCase(java.util.Locale.ROOT);
    if (lower.equals("s3") || lower.equals("s3a") || lower.equals("s3n")) {
      return S3;
    }
    if (lower.equals("gs") || lower.equals("gcs")) {
      return GS;
    }
    if (lower.equals("hdfs")) {
      return HDFS;
    }
    return lower.startsWith("abfs") || lower.startsWith("wasb") || lower.startsWith("az")
        ? AZURE
        : new String[0];
  }

  private static String[] settingsOf(String scheme) {
    String[] names = names(scheme);
    if (names == HDFS) {
      return HDFS_SETTINGS;
    }
    return names == S3
        ? S3_SETTINGS
        : names == GS ? GS_SETTINGS : names == AZURE ? AZURE_SETTINGS : new String[0];
  }

  private static Map<String, String> chosen(Configuration settings, String[] prefixes) {
    Map<String, String> chosen = new HashMap<>();
    if (prefixes.length == 0) {
      return chosen;
    }
    for (Map.Entry<String, String> setting : settings) {
      String name = setting.getKey();
      for (String prefix : prefixes) {
        if (name.startsWith(prefix)) {
          String value = settings.get(name);
          if (value != null && !isDefault(name, settings)) {
            chosen.put(name, value);
          }
        }
      }
    }
    return chosen;
  }

  /** Returns whether a setting has Hadoop's default value. */
  private static boolean isDefault(String name, Configuration settings) {
    String[] sources = settings.getPropertySources(name);
    return sources != null && sources.length > 0 && DEFAULTS.contains(sources[sources.length - 1]);
  }
}
