package io.deltalog.spark;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The parts of a session's setup that extensions cannot do: settings, the last rules of the
 * optimizer, and the jar.
 */
public class SessionSetup {
  /**
   * The catalog class that notebooks set for the JVM connector. The class does not exist if
   * deltalog provides `delta`.
   */
  private static final String CATALOG_OF_CONNECTOR =
      "org.apache.spark.sql.delta.catalog.DeltaCatalog";

  /** The setting for the names of options whose values are hidden in plans. */
  private static final String HIDDEN = "spark.sql.redaction.options.regex";

  /** A pattern for storage options that may be secrets, the same as in `secrecy.py`. */
  static final String SECRETS =
      "(?i:^(aws|azure|google)_\\w*(key|sas|credentials)|^fs[.].*[.](key|sas)\\b)";

  private SessionSetup() {}

  /**
   * Adds deltalog's extensions to an existing session, and thereby to all sessions that are created
   * from it later.
   */
  public static void extend(SparkSession session) {
    Installation.accept();
    DeltalogExtensions.extend(session.extensions());
    complete(session);
    // Later sessions need the catalog from their beginning, because some methods of a session use
    // the catalog before the analyzer exists.
    SparkConf later = session.sparkContext().conf();
    if (isFree(later.get(SessionGuard.CATALOG, null))) {
      later.set(SessionGuard.CATALOG, DeltalogCatalog.class.getName());
    }
  }

  /**
   * Completes the setup of a session that has deltalog's extensions. Further calls have no effect.
   */
  static void complete(SparkSession session) {
    SQLConf settings = session.sessionState().conf();
    if (isFree(settings.getConfString(SessionGuard.CATALOG, null))) {
      settings.setConfString(SessionGuard.CATALOG, DeltalogCatalog.class.getName());
    }
    String hidden = settings.getConfString(HIDDEN);
    if (!hidden.contains(SECRETS)) {
      settings.setConfString(HIDDEN, hidden.isEmpty() ? SECRETS : hidden + "|" + SECRETS);
    }
    // This rule comes first: an aggregate that is answered from the log needs no scan.
    optimize(session.experimental(), new AnswersFromLog());
    optimize(session.experimental(), new PrunedSizes());
    ExecutorJar.give(session.sparkContext());
  }

  /** Returns whether deltalog's catalog may replace the given session catalog. */
  private static boolean isFree(String catalog) {
    return catalog == null
        || catalog.equals(SessionGuard.BUILTIN)
        || (catalog.equals(CATALOG_OF_CONNECTOR) && DeltaName.isOurs());
  }

  /**
   * Adds a rule that runs after all rules of Spark, unless the session was copied from one that
   * already had it.
   */
  private static void optimize(ExperimentalMethods methods, Rule<LogicalPlan> rule) {
    List<Rule<LogicalPlan>> rules = Plans.list(methods.extraOptimizations());
    for (Rule<LogicalPlan> each : rules) {
      if (each.getClass() == rule.getClass()) {
        return;
      }
    }
    rules.add(rule);
    methods.extraOptimizations_$eq(Plans.seq(rules));
  }
}
