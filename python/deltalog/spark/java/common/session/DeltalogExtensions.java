package io.deltalog.spark;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds deltalog's parser, rules and strategy at Spark's extension points. A session shares its
 * extensions with the sessions that are made from it: by newSession() and cloneSession(), for the
 * batches of streams, and for the clients of Spark Connect.
 *
 * <p>Spark applies this class to the first session of a context if the setting spark.sql.extensions
 * names it or if its jar is on the class path. `enable` applies it to the extensions of a session
 * that exists already.
 */
public class DeltalogExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  /**
   * The extension objects to which deltalog's extensions were already added, as keys. The map
   * prevents a second addition, because there is more than one way to add them.
   */
  private static final Map<SparkSessionExtensions, Boolean> EXTENDED =
      Collections.synchronizedMap(new WeakHashMap<>());

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Installation.check();
    ThriftServerJar.check();
    DeltaName.check();
    extend(extensions);
    return BoxedUnit.UNIT;
  }

  /** Adds deltalog's extensions, unless they were already added. */
  static void extend(SparkSessionExtensions extensions) {
    if (EXTENDED.putIfAbsent(extensions, true) != null) {
      return;
    }
    extensions.injectParser(
        (session, next) -> StatementParser.before((SparkSession) session, next));
    for (Class<?> rule : SessionRule.HINTS) {
      extensions.injectHintResolutionRule(new SessionRule(rule));
    }
    for (Class<?> rule : SessionRule.RESOLUTION) {
      extensions.injectResolutionRule(new SessionRule(rule));
    }
    for (Class<?> rule : SessionRule.POST_HOC) {
      extensions.injectPostHocResolutionRule(new SessionRule(rule));
    }
    // Spark calls this for each plan, so sessions that were in use before have the strategy too.
    extensions.injectPlannerStrategy(session -> new DeltalogStrategy());
  }
}
