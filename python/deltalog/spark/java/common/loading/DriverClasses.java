package io.deltalog.spark;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;

/**
 * Checks whether the classes of this package are loaded in the driver and fit Spark, and loads
 * them.
 *
 * <p>Python loads this class on its own, before the jar is added to Spark, with a class loader that
 * has no parent. Therefore it may only use classes of Java itself, and Reflection and LinkCheck,
 * which have the same restriction.
 */
public final class DriverClasses {
  private static final String PACKAGE = "io.deltalog.spark.";

  /**
   * The file in the jar that contains the version of the classes. Its name is the same in every
   * version, so that jars of other versions are detected.
   */
  static final String MARKER = "META-INF/deltalog-spark-version";

  /** The build of Spark that a jar was compiled for. */
  static final String BUILD = "META-INF/deltalog-spark-build";

  /** The minor release of Spark that a jar was compiled for. */
  static final String RELEASE = "META-INF/deltalog-spark-release";

  private static final String BUILD_OF_SPARK = "spark-version-info.properties";

  private final ClassLoader context = Thread.currentThread().getContextClassLoader();

  /** The outermost class loader; null if no jar can be added. */
  private final ClassLoader outermost = outermost(context);

  private final ClassLoader loader = outermost == null ? context : outermost;

  /**
   * Returns the outermost class loader to which jars can be added. ADD JAR gives the calling thread
   * a child of this loader, which other threads do not use.
   */
  private static ClassLoader outermost(ClassLoader innermost) {
    ClassLoader found = null;
    for (ClassLoader at = innermost; at != null; at = at.getParent()) {
      found = takesJars(at) ? at : found;
    }
    return found;
  }

  private static boolean takesJars(ClassLoader loader) {
    return loader instanceof URLClassLoader
        && Arrays.stream(loader.getClass().getMethods())
            .anyMatch(method -> method.getName().equals("addURL"));
  }

  /** Returns whether jars can be added. */
  public boolean canBeAdded() {
    return outermost != null;
  }

  /** Returns the version of the classes that the driver has loaded, or null if there are none. */
  public String version() {
    return text(loader.getResource(MARKER));
  }

  /** Returns the path of the jar with the classes in the driver. */
  public String jar() {
    String inside = loader.getResource(MARKER).getPath();
    return Path.of(URI.create(inside.substring(0, inside.lastIndexOf("!/")))).toString();
  }

  /**
   * Returns the symbols that the classes of a jar need but this build of Spark lacks: one line for
   * each feature group that cannot be used, with its name, a colon and the first missing symbols.
   */
  public String missing(String jar) throws IOException {
    try (URLClassLoader beside = new URLClassLoader(new URL[] {url(jar)}, loader)) {
      if (text(beside.findResource(BUILD)).equals(buildOfSpark(loader))) {
        return "";
      }
      return new LinkCheck(beside, jar)
          .missing().entrySet().stream()
              .map(group -> group.getKey() + ": " + shortened(group.getValue()))
              .collect(Collectors.joining("\n"));
    }
  }

  /** Returns the first three symbols of a list, and how many more there are. */
  static String shortened(List<String> symbols) {
    String more = symbols.size() > 3 ? " and " + (symbols.size() - 3) + " more" : "";
    return String.join(", ", symbols.subList(0, Math.min(3, symbols.size()))) + more;
  }

  /** Returns the revision that Spark was built from, or null. */
  static String buildOfSpark(ClassLoader loader) throws IOException {
    try (InputStream stream = loader.getResourceAsStream(BUILD_OF_SPARK)) {
      Properties properties = new Properties();
      if (stream != null) {
        properties.load(stream);
      }
      return properties.getProperty("revision");
    }
  }

  /**
   * Adds a copy of a jar to the driver, and returns the path of the copy. A copy is needed, because
   * executors that start later load these classes, even if the wheel has been replaced by then. The
   * random name distinguishes the jar from the jars of other JVMs.
   */
  public String add(String jar) throws IOException, ReflectiveOperationException {
    Path directory = Files.createTempDirectory("deltalog-");
    String random = directory.getFileName().toString().replace("deltalog", "");
    Path copy = directory.resolve(new File(jar).getName().replace(".jar", random + ".jar"));
    // Java deletes these files in reverse order, so the directory is empty when it is deleted.
    directory.toFile().deleteOnExit();
    copy.toFile().deleteOnExit();
    Files.copy(Path.of(jar), copy);
    addUrl(url(copy.toString()));
    return copy.toString();
  }

  /** Adds a jar or a directory of classes to the driver. */
  private void addUrl(URL url) throws ReflectiveOperationException {
    loader.getClass().getMethod("addURL", URL.class).invoke(loader, url);
  }

  /**
   * Returns a class of this package by its simple name; null if its FeatureGroup cannot be used
   * because this build of Spark lacks something that it needs.
   */
  public Class<?> type(String name) throws ReflectiveOperationException {
    Object refusal =
        loader
            .loadClass(PACKAGE + "FeatureGroup")
            .getMethod("refusal", String.class)
            .invoke(null, name);
    return refusal == null ? loader.loadClass(PACKAGE + name) : null;
  }

  /** Returns the object through which Python reaches the classes. */
  public Reflection reflection() {
    return new Reflection();
  }

  private static URL url(String path) throws IOException {
    return new File(path).toURI().toURL();
  }

  static String text(URL resource) {
    if (resource == null) {
      return null;
    }
    try {
      URLConnection connection = resource.openConnection();
      connection.setUseCaches(false); // The cache would not notice that a wheel has been replaced.
      try (InputStream stream = connection.getInputStream()) {
        return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
