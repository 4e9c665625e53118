package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Puts our rules into the analyzer of a session that was in use before it had our extensions. The
 * analyzer reads its lists of rules at each run, from fields that can be set (HiddenFields).
 */
public class AnalyzerHook {
  /**
   * Returns null, or why that is impossible with this release of Spark. Later calls have no effect.
   */
  public static String install(SparkSession session) {
    try {
      add(session, "hintResolutionRules", SessionRule.HINTS);
      add(session, "extendedResolutionRules", SessionRule.RESOLUTION);
      add(session, "postHocResolutionRules", SessionRule.POST_HOC);
      return null;
    } catch (ReflectiveOperationException e) {
      return e.toString();
    } catch (RuntimeException e) {
      return e.toString();
    }
  }

  private static void add(SparkSession session, String name, Class[] ours)
      throws ReflectiveOperationException {
    Object analyzer = session.sessionState().analyzer();
    List rules =
        Plans.list(
            (Seq)
                analyzer.getClass().getMethod(name, new Class[0]).invoke(analyzer, new Object[0]));
    int known = rules.size();
    for (int i = 0; i < ours.length; i++) {
      if (!has(rules, ours[i])) {
        rules.add(new SessionRule(ours[i]).of(session));
      }
    }
    if (rules.size() > known) {
      HiddenFields.set(analyzer, name, Plans.seq(rules));
    }
  }

  private static boolean has(List rules, Class type) {
    for (int i = 0; i < rules.size(); i++) {
      if (rules.get(i).getClass() == type) {
        return true;
      }
    }
    return false;
  }
}
