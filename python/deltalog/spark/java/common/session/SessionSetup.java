package io.deltalog.spark;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * The setup of a session that extensions cannot do: settings, the last rules of the optimizer, and
 * our jar.
 */
public class SessionSetup {
  /**
   * The catalog that notebooks set for the JVM connector. If `delta` is ours, its class is missing.
   */
  private static final String CATALOG_OF_CONNECTOR =
      "org.apache.spark.sql.delta.catalog.DeltaCatalog";

  /** The names of options whose values plans do not show. */
  private static final String HIDDEN = "spark.sql.redaction.options.regex";

  /** Options of stores that may be secrets, as in `secrecy.py`. */
  static final String SECRETS =
      "(?i:^(aws|azure|google)_\\w*(key|sas|credentials)|^fs[.].*[.](key|sas)\\b)";

  private SessionSetup() {}

  /**
   * Adds our extensions to an existing session, and thereby to all sessions that are created from
   * it later.
   */
  public static void extend(SparkSession session) {
    Installation.accept();
    DeltalogExtensions.extend(session.extensions());
    complete(session);
    // Some methods of a session use the catalog before the analyzer exists.
    SparkConf later = session.sparkContext().conf();
    if (isFree(later.get(SessionGuard.CATALOG, null))) {
      later.set(SessionGuard.CATALOG, DeltalogCatalog.class.getName());
    }
  }

  /** Completes a session that has our extensions. Further calls have no effect. */
  static void complete(SparkSession session) {
    SQLConf settings = session.sessionState().conf();
    if (isFree(settings.getConfString(SessionGuard.CATALOG, null))) {
      settings.setConfString(SessionGuard.CATALOG, DeltalogCatalog.class.getName());
    }
    String hidden = settings.getConfString(HIDDEN);
    if (!hidden.contains(SECRETS)) {
      settings.setConfString(HIDDEN, hidden.isEmpty() ? SECRETS : hidden + "|" + SECRETS);
    }
    // An aggregate that the log answers needs no scan, so this rule is the first one.
    optimize(session.experimental(), new AnswersFromLog());
    optimize(session.experimental(), new PrunedSizes());
    ExecutorJar.give(session.sparkContext());
  }

  /** Returns whether ours may take the place of a session catalog. */
  private static boolean isFree(String catalog) {
    return catalog == null
        || catalog.equals(SessionGuard.BUILTIN)
        || (catalog.equals(CATALOG_OF_CONNECTOR) && DeltaName.isOurs());
  }

  /**
   * Adds a rule that runs after all rules of Spark, unless this session is a copy of one that had
   * it.
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
