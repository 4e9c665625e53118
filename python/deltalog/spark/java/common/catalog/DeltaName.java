package io.deltalog.spark;

import java.lang.reflect.Field;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.DataSourceManager;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import scala.Option;

/**
 * Decides whether the name "delta" refers to deltalog: as a format, as the provider of catalog
 * entries, and as the namespace of paths. It does, unless a setting turns the name off or another
 * data source, such as the JVM connector, has the name.
 */
public final class DeltaName {
  static final String NAME = "delta";

  /**
   * The setting of a session: false turns the name off, true requires it, and auto, the default,
   * uses it unless another source has it.
   */
  static final String SETTING = "spark.deltalog.aliasDelta";

  private static final String AUTO = "auto";
  private static final String OFF = "false";
  private static final Set<String> VALUES = Set.of("true", OFF, AUTO);

  /**
   * The last value of `alias_delta` that was passed to `enable`. It applies to sessions and
   * contexts without the setting.
   */
  private static volatile String chosen = AUTO;

  private static volatile Found found;

  private static final Field REGISTERED =
      HiddenFields.orNull(DataSourceManager.class, "runtimeDataSourceBuilders");

  private DeltaName() {}

  /**
   * The result of searching the jars of a class loader for another data source with the name; owner
   * is that source, or null.
   */
  private record Found(ClassLoader loader, List<String> jars, String owner) {}

  /** Sets whether this session and later ones use the name. */
  public static void choose(SparkSession session, boolean isWanted) {
    chosen = String.valueOf(isWanted);
    session.sessionState().conf().setConfString(SETTING, chosen);
    session.sparkContext().conf().set(SETTING, chosen);
  }

  /**
   * Throws an exception if the setting is invalid, or if it requires the name but another source
   * has it.
   */
  static void check() {
    Option<SparkContext> application = SparkContext$.MODULE$.getActive();
    String value = application.isEmpty() ? AUTO : application.get().conf().get(SETTING, AUTO);
    if (!VALUES.contains(value.toLowerCase(Locale.ROOT))) {
      throw new IllegalArgumentException(
          SETTING + " is " + value + ", but has to be true, false or " + AUTO);
    }
    String refusal = value.equalsIgnoreCase("true") ? refusal(SETTING + "=true", null) : null;
    if (refusal != null) {
      throw new IllegalArgumentException(refusal);
    }
  }

  /**
   * Returns the reason why a session, which may be null, cannot have the name as requested; null if
   * it can.
   */
  public static String refusal(String wish, SparkSession session) {
    String owner = owner(session);
    return owner == null
        ? null
        : wish
            + " is not possible: the format delta is "
            + owner
            + ", from the JVM connector or another package; omit "
            + wish
            + ", or remove that package";
  }

  /** Returns whether the name of a provider or of a path's namespace refers to deltalog. */
  static boolean is(String name) {
    return DeltaAlias.class.getName().equals(name) || (NAME.equalsIgnoreCase(name) && isOurs());
  }

  /** Returns whether the name "delta" refers to deltalog in the session of this thread. */
  static boolean isOurs() {
    if (OFF.equalsIgnoreCase(SQLConf.get().getConfString(SETTING, chosen))) {
      return false;
    }
    Option<org.apache.spark.sql.SparkSession> active =
        org.apache.spark.sql.SparkSession.getActiveSession();
    boolean isClassic = active.isDefined() && active.get() instanceof SparkSession;
    return owner(isClassic ? (SparkSession) active.get() : null) == null;
  }

  /** Returns the other source that has the name in a session (which may be null), or null. */
  private static String owner(SparkSession session) {
    String ofJars = ownerAmongJars();
    boolean isOfPython = session != null && isOfPython(session.sessionState().dataSourceManager());
    return ofJars == null && isOfPython ? "a Python Data Source" : ofJars;
  }

  /**
   * Returns whether a Python Data Source has been registered under the name. Spark's own methods
   * are not used, because they would start a Python process to look for built-in Python data
   * sources.
   */
  private static boolean isOfPython(DataSourceManager manager) {
    try {
      return REGISTERED != null && ((Map<?, ?>) REGISTERED.get(manager)).containsKey(NAME);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e); // It is accessible.
    }
  }

  /**
   * Returns the class of another source that has the name, or null. Spark asks every source for its
   * name whenever it looks up any source, so the result is kept until the jars change.
   */
  private static String ownerAmongJars() {
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    ClassLoader loader = context == null ? DeltaName.class.getClassLoader() : context;
    List<String> jars = jars(loader);
    Found known = found;
    if (known == null || known.loader() != loader || !known.jars().equals(jars)) {
      known = new Found(loader, jars, owner(loader));
      found = known;
    }
    return known.owner();
  }

  private static String owner(ClassLoader loader) {
    for (DataSourceRegister source : ServiceLoader.load(DataSourceRegister.class, loader)) {
      if (!(source instanceof DeltaAlias) && NAME.equalsIgnoreCase(source.shortName())) {
        return source.getClass().getName();
      }
    }
    return null;
  }

  /** Returns the jars of a class loader and its parents. An application may add more jars later. */
  private static List<String> jars(ClassLoader loader) {
    List<String> jars = new ArrayList<>();
    for (ClassLoader at = loader; at != null; at = at.getParent()) {
      if (at instanceof URLClassLoader taking) {
        Arrays.stream(taking.getURLs()).map(String::valueOf).forEach(jars::add);
      }
    }
    return jars;
  }
}
