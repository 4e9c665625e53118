package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.ExpressionUtils;
import scala.Option;
import scala.Tuple2;

/**
 * The plans of a MERGE: the target's rows joined with the source, and the source's rows to insert.
 *
 * <p>The source is never the outer side of the join, so it can be broadcast for every combination
 * of clauses. While rows are written, SourceMatches records which rows of the source have matched.
 */
public class MergePlans {
  private final StatementScan scan;
  private final MergeIntoTable statement;
  private MergeClauses matched;
  private MergeClauses notMatched;
  private MergeClauses bySource;
  private final boolean matchesOnce;

  /**
   * Creates the plans; with matchesOnce, a row of the target must not match several rows of the
   * source.
   */
  public MergePlans(StatementScan scan, LogicalPlan statement, boolean matchesOnce) {
    this.scan = scan;
    this.matchesOnce = matchesOnce;
    this.statement = (MergeIntoTable) statement;
  }

  /**
   * Fits the values of all clauses to the columns of the table. Call this method first. The
   * argument lists, in lower case, the columns that are computed if an INSERT clause does not
   * assign them.
   */
  public void resolve(List<String> computed) {
    Attribute[] columns = scan.columns();
    Set<String> names = new HashSet<>(computed);
    AssignedValues assigned = scan.values();
    matched = new MergeClauses(statement.matchedActions(), columns, 1, names, assigned);
    bySource =
        new MergeClauses(
            statement.notMatchedBySourceActions(), columns, 1 + matched.size(), names, assigned);
    notMatched = new MergeClauses(statement.notMatchedActions(), columns, 1, names, assigned);
  }

  /**
   * Returns the keys of the condition: the parts that require a column of the target to equal a
   * value of the source.
   */
  public static List<MergeKey> keys(LogicalPlan statement) {
    MergeIntoTable merge = (MergeIntoTable) statement;
    List<MergeKey> keys = new ArrayList<>();
    List<Expression> parts = Plans.conjuncts(merge.mergeCondition());
    for (Expression part : parts) {
      if (part instanceof EqualTo equality) {
        addKey(keys, equality.left(), equality.right(), merge);
        addKey(keys, equality.right(), equality.left(), merge);
      }
    }
    return keys;
  }

  private static void addKey(
      List<MergeKey> keys, Expression column, Expression value, MergeIntoTable merge) {
    boolean isOfTarget =
        column instanceof Attribute && StatementTarget.of(merge).stored(column).nonEmpty();
    if (isOfTarget
        && value.deterministic()
        && !value.references().isEmpty()
        && value.references().subsetOf(merge.sourceTable().outputSet())) {
      MergeKey key = new MergeKey((Attribute) column, value);
      if (key.isOrdered()) {
        keys.add(key);
      }
    }
  }

  /** Returns the parts of the condition that read only the target. */
  public static List<Expression> targetFilters(LogicalPlan statement) {
    MergeIntoTable merge = (MergeIntoTable) statement;
    List<Expression> filters = new ArrayList<>();
    List<Expression> parts = Plans.conjuncts(merge.mergeCondition());
    for (Expression part : parts) {
      if (part.deterministic()
          && part.references().subsetOf(merge.targetTable().outputSet())
          && StatementTarget.of(merge).stored(part).nonEmpty()
          && !SubqueryExpression.hasSubquery(part)) {
        filters.add(part);
      }
    }
    return filters;
  }

  /**
   * Returns, for each row of the source, whether it meets the parts of the condition that only read
   * the source and, if so, the values of the keys (KeySummary). The keys of other rows are not
   * evaluated, because these parts may guard against errors in the keys.
   */
  public static LogicalPlan sourceKeys(
      LogicalPlan statement, LogicalPlan source, List<MergeKey> keys) {
    MergeIntoTable merge = (MergeIntoTable) statement;
    Expression canMatch = Literal$.MODULE$.TrueLiteral();
    List<Expression> parts = Plans.conjuncts(merge.mergeCondition());
    for (Expression part : parts) {
      if (part.deterministic()
          && part.references().subsetOf(merge.sourceTable().outputSet())
          && !SubqueryExpression.hasSubquery(part)) {
        canMatch = new And(canMatch, part);
      }
    }
    List<NamedExpression> columns = new ArrayList<>();
    columns.add(Plans.alias(canMatch, "can_match"));
    for (int i = 0; i < keys.size(); i++) {
      Expression value = keys.get(i).value();
      columns.add(Plans.alias(new If(canMatch, value, Plans.nothing(value.dataType())), "key" + i));
    }
    return new Project(Plans.seq(columns), source);
  }

  /** Returns whether rows are inserted. */
  public boolean inserts() {
    return !notMatched.isEmpty();
  }

  /** Returns whether the join writes rows of the table. */
  public boolean changes() {
    return matched.writes() || bySource.writes();
  }

  /**
   * Returns the rows of the target to change or delete. If there are clauses that insert, or a row
   * may only match once, it returns all matching pairs. The filters are true for all rows of the
   * target that can match. The source must have row numbers in its last column. If changes are
   * recorded, rows to change are also returned with their old values.
   */
  public LogicalPlan changed(
      LogicalPlan source, List<Expression> filters, boolean isBroadcast, boolean records) {
    LogicalPlan target = scan.plan();
    for (Expression filter : filters) {
      target = new Filter(filter, target);
    }
    LogicalPlan right = source;
    if (isBroadcast) {
      right = new ResolvedHint(source, new HintInfo(Option.apply(BROADCAST$.MODULE$)));
    }
    JoinType type =
        (JoinType) (bySource.isEmpty() ? (Object) Inner$.MODULE$ : (Object) LeftOuter$.MODULE$);
    LogicalPlan joined =
        new Join(
            target,
            right,
            type,
            Option.apply(statement.mergeCondition()),
            JoinHint$.MODULE$.NONE());
    Attribute id = sourceId(joined);
    Expression isPair = new IsNotNull(id);
    Expression clause =
        bySource.isEmpty() ? matched.number() : new If(isPair, matched.number(), bySource.number());
    LogicalPlan numbered = numbered(joined, clause);
    Attribute number = numbered.output().last();
    boolean needsPairs = inserts() || matchesOnce;
    if (!needsPairs) {
      numbered = new Filter(new GreaterThan(number, Plans.integer(0)), numbered);
    } else if (!bySource.isEmpty()) {
      numbered = new Filter(new Or(isPair, new GreaterThan(number, Plans.integer(0))), numbered);
    }
    List<NamedExpression> columns = new ArrayList<>();
    if (changes()) {
      for (int i = 0; i < scan.columns().length; i++) {
        Attribute old = scan.columns()[i];
        List<Tuple2<Expression, Expression>> branches = new ArrayList<>();
        matched.addValues(branches, i, old, number);
        bySource.addValues(branches, i, old, number);
        columns.add(Plans.alias(Plans.choose(branches, old), old.name()));
      }
      RowPlans.addTracking(columns, scan, true);
    }
    List<Tuple2<Expression, Expression>> actions = new ArrayList<>();
    matched.addActions(actions, number, 0);
    bySource.addActions(actions, number, RowAction.BY_SOURCE);
    Expression action = Plans.choose(actions, Plans.integer(0));
    if (needsPairs) {
      action =
          new BitwiseOr(action, new If(isPair, Plans.integer(RowAction.MATCHED), Plans.integer(0)));
    }
    RowPlans.addMarkers(columns, action, scan);
    if (inserts()) {
      Expression number64 = new Coalesce(Plans.seq(List.of(id, Plans.bigint(0))));
      columns.add(Plans.alias(number64, RowAction.SOURCE));
    }
    return records
        ? RowPlans.withBefore(columns, scan, numbered)
        : new Project(Plans.seq(columns), numbered);
  }

  /**
   * Returns the rows that the clauses with these numbers insert. The given rows are the rows of the
   * source without a match.
   */
  public LogicalPlan inserted(LogicalPlan source, List<Integer> clauses) {
    LogicalPlan numbered = numbered(source, notMatched.number());
    Attribute number = numbered.output().last();
    List<NamedExpression> columns = new ArrayList<>();
    for (int i = 0; i < scan.columns().length; i++) {
      Attribute column = scan.columns()[i];
      List<Tuple2<Expression, Expression>> branches = new ArrayList<>();
      notMatched.addValues(branches, i, column, number);
      columns.add(
          Plans.alias(Plans.choose(branches, Plans.nothing(column.dataType())), column.name()));
    }
    for (int i = 0; i < scan.tracking().length; i++) {
      Attribute column = scan.tracking()[i];
      columns.add(Plans.alias(Plans.nothing(column.dataType()), column.name()));
    }
    List<Tuple2<Expression, Expression>> actions = new ArrayList<>();
    List<Expression> numbers = new ArrayList<>();
    for (int clause : clauses) {
      Expression isOfClause = new EqualTo(number, Plans.integer(clause));
      actions.add(
          Plans.branch(isOfClause, Plans.integer(RowAction.WRITE | RowAction.ofClause(clause))));
      numbers.add(Plans.integer(clause));
    }
    columns.add(Plans.alias(Plans.choose(actions, Plans.integer(0)), RowAction.OPERATION));
    columns.add(Plans.alias(Plans.integer(0), RowAction.FILE));
    columns.add(Plans.alias(Plans.bigint(0), RowAction.ROW));
    Expression isInserted = new In(number, Plans.seq(numbers));
    return new Project(Plans.seq(columns), new Filter(isInserted, numbered));
  }

  /**
   * Returns the column with the number of each row of the source, whatever the names of the other
   * columns are.
   */
  public static Column sourceNumber(LogicalPlan source) {
    return ExpressionUtils.column(sourceId(source));
  }

  private static LogicalPlan numbered(LogicalPlan rows, Expression clause) {
    List<NamedExpression> columns = Plans.list(rows.output());
    columns.add(Plans.alias(clause, "__deltalog_clause"));
    return new Project(Plans.seq(columns), rows);
  }

  private static Attribute sourceId(LogicalPlan joined) {
    return joined.output().last();
  }
}
