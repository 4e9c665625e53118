package io.deltalog.spark;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Our parser, rules and strategy, at the places that Spark has for extensions. A session shares its
 * extensions with the sessions that are made from it: by newSession() and cloneSession(), for the
 * batches of streams, and for the clients of Spark Connect.
 *
 * <p>Spark applies this class to the first session of a context if the setting spark.sql.extensions
 * names it or if its jar is on the class path. `enable` applies it to the extensions of a session
 * that exists already.
 */
public class DeltalogExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit>
    implements SparkSessionExtensionsProvider {
  /** The extensions that already have ours, as keys: they may be added in more than one way. */
  private static final Map EXTENDED = Collections.synchronizedMap(new WeakHashMap());

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Installation.check();
    ThriftServerJar.check();
    DeltaName.check();
    extend(extensions);
    return BoxedUnit.UNIT;
  }

  /** Adds our extensions, once. */
  static void extend(SparkSessionExtensions extensions) {
    if (EXTENDED.putIfAbsent(extensions, true) != null) {
      return;
    }
    extensions.injectParser(new Parser());
    for (int i = 0; i < SessionRule.HINTS.length; i++) {
      extensions.injectHintResolutionRule(new SessionRule(SessionRule.HINTS[i]));
    }
    for (int i = 0; i < SessionRule.RESOLUTION.length; i++) {
      extensions.injectResolutionRule(new SessionRule(SessionRule.RESOLUTION[i]));
    }
    for (int i = 0; i < SessionRule.POST_HOC.length; i++) {
      extensions.injectPostHocResolutionRule(new SessionRule(SessionRule.POST_HOC[i]));
    }
    extensions.injectPlannerStrategy(new Strategy());
  }

  /** Puts our parser in front of the parser of a new session. */
  private static final class Parser extends AbstractFunction2 {
    @Override
    public Object apply(Object session, Object next) {
      return StatementParser.before((SparkSession) session, (ParserInterface) next);
    }
  }

  /**
   * Creates our strategy. Spark calls this for each plan, so sessions that were in use before have
   * the strategy too.
   */
  private static final class Strategy extends AbstractFunction1 {
    @Override
    public Object apply(Object session) {
      return new DeltalogStrategy();
    }
  }
}
