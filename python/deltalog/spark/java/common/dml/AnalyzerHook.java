package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Puts rules of ours into the analyzer of a session that exists already. Spark has a place for them only in the
 * settings with which a session begins.
 *
 * The analyzer reads its lists of rules at each run, from fields that can be set (HiddenFields).
 */
public class AnalyzerHook {
  /** Returns null, or why that is impossible with this release of Spark. Further calls have no effect. */
  public static String install(SparkSession session) {
    Object analyzer = session.sessionState().analyzer();
    try {
      add(analyzer, "hintResolutionRules", new EvolvingMerges());
      add(analyzer, "hintResolutionRules", new NamedChangeFeeds(session));
      add(analyzer, "extendedResolutionRules", new MergeEvolution(session));
      add(analyzer, "extendedResolutionRules", new MergeTargets());
      add(analyzer, "postHocResolutionRules", new DynamicOverwrites());
      add(analyzer, "postHocResolutionRules", new ConstraintTargets());
      add(analyzer, "postHocResolutionRules", new TableSecrets());
      // The last one, after those that pad values which are compared with columns of the type char.
      add(analyzer, "postHocResolutionRules", new StatementRule(session));
      return null;
    } catch (ReflectiveOperationException e) {
      return e.toString();
    } catch (RuntimeException e) {
      return e.toString();
    }
  }

  private static void add(Object analyzer, String name, Rule rule) throws ReflectiveOperationException {
    List rules = Plans.list((Seq) analyzer.getClass().getMethod(name, new Class[0]).invoke(analyzer, new Object[0]));
    for (int i = 0; i < rules.size(); i++) {
      if (rules.get(i).getClass().getName().equals(rule.getClass().getName())) {
        return;
      }
    }
    rules.add(rule);
    HiddenFields.set(analyzer, name, Plans.seq(rules));
  }
}
