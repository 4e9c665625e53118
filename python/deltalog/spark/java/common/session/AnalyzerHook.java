package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Adds deltalog's rules to the analyzer of a session that was in use before it got deltalog's
 * extensions. At each run, the analyzer reads its lists of rules from fields, which can be set by
 * reflection (HiddenFields).
 */
public class AnalyzerHook {
  /**
   * Adds the rules. Returns null, or the reason why this is impossible with this release of Spark.
   * If the session already has the rules, the call has no effect.
   */
  public static String install(SparkSession session) {
    try {
      add(session, "hintResolutionRules", SessionRule.HINTS);
      add(session, "extendedResolutionRules", SessionRule.RESOLUTION);
      add(session, "postHocResolutionRules", SessionRule.POST_HOC);
      return null;
    } catch (ReflectiveOperationException e) {
      return e.toString();
    }
  }

  private static void add(SparkSession session, String name, Class<?>[] ours)
      throws ReflectiveOperationException {
    Object analyzer = session.sessionState().analyzer();
    List<Rule<LogicalPlan>> rules =
        Plans.list(
            Unchecked.<Seq<Rule<LogicalPlan>>>cast(
                analyzer.getClass().getMethod(name).invoke(analyzer)));
    int known = rules.size();
    for (Class<?> rule : ours) {
      if (!has(rules, rule)) {
        rules.add(new SessionRule(rule).of(session));
      }
    }
    if (rules.size() > known) {
      HiddenFields.set(analyzer, name, Plans.seq(rules));
    }
  }

  private static boolean has(List<Rule<LogicalPlan>> rules, Class<?> type) {
    return rules.stream().anyMatch(rule -> rule.getClass() == type);
  }
}
