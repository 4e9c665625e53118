package io.deltalog.spark;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.runtime.AbstractFunction1;

/** Creates a deltalog rule for the analyzer of a session. */
public class SessionRule
    extends AbstractFunction1<org.apache.spark.sql.SparkSession, Rule<LogicalPlan>> {
  /** The rules that run before Spark resolves anything. */
  static final Class<?>[] HINTS =
      available(
          LostStatements.class,
          CarriedStatements.class,
          EvolvingMerges.class,
          HeldWrites.class,
          NamedChangeFeeds.class,
          StreamTriggers.class);

  /** The rules that run together with Spark's own rules that resolve names. */
  static final Class<?>[] RESOLUTION =
      available(
          LostStatements.class,
          ReplacingInserts.class,
          EvolvingWrites.class,
          MergeEvolution.class,
          MergeTargets.class,
          ChangeVariables.class);

  /**
   * The rules that run after the resolution. The last one follows Spark's rule that pads values of
   * the type char.
   */
  static final Class<?>[] POST_HOC =
      available(
          DynamicOverwrites.class,
          ConstraintTargets.class,
          TableSecrets.class,
          StreamSecrets.class,
          StatementRule.class);

  private final Class<?> type;

  /**
   * Returns the rules that can be used. They include LostStatements only if the rules for
   * statements cannot be used.
   */
  private static Class<?>[] available(Class<?>... rules) {
    return Arrays.stream(FeatureGroup.available(rules))
        .filter(rule -> rule != LostStatements.class || FeatureGroup.STATEMENTS.isLost())
        .toArray(Class<?>[]::new);
  }

  /** Takes the class of the rule. Its constructor takes no parameter, or the session. */
  public SessionRule(Class<?> type) {
    this.type = type;
  }

  /**
   * Returns the rule. Spark calls this for the first rule when it begins to create the session's
   * analyzer. The session's settings exist by then, so this call also completes the session's
   * setup.
   */
  @Override
  public Rule<LogicalPlan> apply(org.apache.spark.sql.SparkSession session) {
    if (type == HINTS[0]) {
      SessionSetup.complete((SparkSession) session);
    }
    return of((SparkSession) session);
  }

  Rule<LogicalPlan> of(SparkSession session) {
    Constructor<?> constructor = type.getConstructors()[0];
    Object[] arguments =
        constructor.getParameterCount() == 0 ? new Object[0] : new Object[] {session};
    try {
      return Unchecked.cast(constructor.newInstance(arguments));
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("deltalog cannot make its rule " + type.getSimpleName(), e);
    }
  }
}
