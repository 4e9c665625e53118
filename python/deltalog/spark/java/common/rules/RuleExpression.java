package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable;
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;

/**
 * Checks an expression in a table's log: a generated column, a default value, a constraint or an
 * invariant. An attacker may have written the expression, and may later read its values in the
 * table.
 *
 * <ul>
 *   <li>The expression is parsed with Spark's plain grammar. A session's parser would replace
 *       ${names} with settings and environment variables.
 *   <li>The expression may contain constants, columns of the table, operators, and the functions of
 *       a list (`RuleFunctions`). Everything else is refused, such as subqueries, windows,
 *       aggregates, and names that are not columns.
 *   <li>It is resolved in the same way as Spark resolves default values, with built-in functions
 *       only. The functions and variables of the session are not used, so none of them can replace
 *       a built-in function.
 * </ul>
 */
public class RuleExpression {
  /**
   * The classes that Spark's parser creates for operators, and for functions with a special syntax.
   */
  private static final Set<String> PARTS =
      Set.of(
          "Literal",
          "Alias",
          "UnresolvedExtractValue",
          "SemiStructuredExtract",
          "CreateNamedStruct",
          "NamePlaceholder$",
          "Cast",
          "CaseWhen",
          "If",
          "Coalesce",
          "And",
          "Or",
          "Not",
          "EqualTo",
          "EqualNullSafe",
          "LessThan",
          "LessThanOrEqual",
          "GreaterThan",
          "GreaterThanOrEqual",
          "Between",
          "In",
          "IsNull",
          "IsNotNull",
          "Like",
          "ILike",
          "RLike",
          "LikeAll",
          "NotLikeAll",
          "LikeAny",
          "NotLikeAny",
          "Lower",
          "Add",
          "Subtract",
          "Multiply",
          "Divide",
          "IntegralDivide",
          "Remainder",
          "UnaryMinus",
          "UnaryPositive",
          "BitwiseAnd",
          "BitwiseOr",
          "BitwiseXor",
          "BitwiseNot",
          "ShiftLeft",
          "ShiftRight",
          "ShiftRightUnsigned",
          "Concat",
          "Substring",
          "StringTrim",
          "StringTrimLeft",
          "StringTrimRight",
          "Overlay",
          "StringLocate",
          "TimestampAdd",
          "TimestampDiff",
          "Collate",
          "UnresolvedCollation",
          "NamedArgumentExpression");

  /**
   * The expressions that the parser returns for functions of the current time without parentheses,
   * if a session reserves their names.
   */
  private static final Set<String> MOMENTS =
      Set.of("CurrentDate", "CurrentTimestamp", "LocalTimestamp");

  private static final String CONSTRAINT = "constraint";
  private static final String GENERATED = "generated";
  private static final String DEFAULT = "default";

  private final String table;
  private final String kind;
  private final String name;
  private final String sql;

  private RuleExpression(String table, String kind, String name, String sql) {
    this.table = table;
    this.kind = kind;
    this.name = name;
    this.sql = sql;
  }

  /** Creates the condition of a constraint, or of a column's invariant. */
  public static RuleExpression ofConstraint(String table, String name, String sql) {
    return new RuleExpression(table, CONSTRAINT, name, sql);
  }

  /** Creates the value of a generated column. */
  public static RuleExpression ofGenerated(String table, String column, String sql) {
    return new RuleExpression(table, GENERATED, column, sql);
  }

  /**
   * Returns the reason why a default value is not allowed, or null if it is allowed. Spark then
   * resolves it in the same way as this class.
   */
  public static RuleRefusal refusalOfDefault(String table, String column, String sql) {
    RuleExpression value = new RuleExpression(table, DEFAULT, column, sql);
    try {
      Expression parsed = value.parsed();
      value.check(parsed, Set.of());
      value.computeOnce(parsed);
      return null;
    } catch (RuleRefusal e) {
      return e;
    }
  }

  /** Returns the expression with its names resolved to the columns of the table. */
  public Expression resolved(Attribute[] columns) {
    try {
      return allowed(columns);
    } catch (RuleRefusal e) {
      throw e.error();
    }
  }

  private Expression allowed(Attribute[] columns) {
    Expression parsed = parsed();
    Set<String> names = new HashSet<>();
    for (Attribute column : columns) {
      names.add(key(column.name()));
    }
    check(parsed, names);
    Expression resolved = analyzed(parsed, columns);
    if (!resolved.deterministic()) {
      throw refused("its value may differ each time it is computed");
    }
    for (Expression part : Plans.list(resolved.collectLeaves())) {
      String leaf = partOf(part);
      if (leaf.equals(
          "VariableReference")) { // A field that a column lacks could be the variable of a script.
        throw refused("the table has no column " + part.sql());
      }
      // For example, the list of functions allows unix_timestamp, which reads the current time if
      // it has no arguments. The current time zone is allowed, because all casts to times use it
      // anyway.
      if (leaf.startsWith("Current") && !leaf.equals("CurrentTimeZone") && !mayChange()) {
        throw refused("its value depends on the current time");
      }
    }
    return RuleGrowth.isIn(resolved)
        ? RuleGrowth.bounded(resolved, new RuleAllowance(RuleFunctions.bytes(), tooLarge()))
        : resolved;
  }

  /** Refuses a default value that is too large, because Spark computes it without a limit. */
  private void computeOnce(Expression parsed) {
    if (parsed.children().isEmpty()) {
      return;
    }
    Expression resolved;
    try {
      resolved = analyzed(parsed, new Attribute[0]);
    } catch (RuleRefusal e) {
      return; // If Spark needs the value, it raises the same error.
    }
    if (!RuleGrowth.isIn(resolved)) {
      return;
    }
    if (!RuleGrowth.isKnown(resolved)) {
      throw refused("the size of its value cannot be computed in advance");
    }
    RuleRefusal tooLarge = tooLarge();
    try {
      RuleGrowth.bounded(resolved, new RuleAllowance(RuleFunctions.bytes(), tooLarge)).eval(null);
    } catch (RuntimeException e) {
      // Spark itself raises any other error when it needs the value.
      if (tooLarge.sql().equals(e.getMessage())) {
        throw tooLarge;
      }
    }
  }

  private RuleRefusal tooLarge() {
    return refused(
        "its values would have more than "
            + RuleFunctions.bytes()
            + " bytes in a row, a quarter of the limit for many rows (the environment variable"
            + " DELTALOG_EXPRESSION_BYTES)");
  }

  private Expression parsed() {
    try {
      return new CatalystSqlParser().parseExpression(sql);
    } catch (Exception e) {
      throw refused("it is not an expression of Spark's SQL: " + firstLine(e));
    }
  }

  private Expression analyzed(Expression parsed, Attribute[] columns) {
    List<NamedExpression> values = new ArrayList<>();
    values.add(Plans.alias(parsed, "value"));
    Seq<Attribute> relation = Plans.seq(Arrays.asList(columns));
    LogicalPlan plan = new Project(Plans.seq(values), LocalRelation$.MODULE$.apply(relation));
    try {
      plan = ResolveDefaultColumns.DefaultColumnAnalyzer$.MODULE$.execute(plan);
      ResolveDefaultColumns.DefaultColumnAnalyzer$.MODULE$.checkAnalysis(plan);
    } catch (Exception e) {
      throw refused(firstLine(e));
    }
    return ((Alias) ((Project) plan).projectList().head()).child();
  }

  /**
   * Refuses parts that are not allowed. The names are the table's columns and the parameters of
   * lambda functions.
   */
  private void check(Expression part, Set<String> names) {
    Set<String> known = names;
    if (part instanceof UnresolvedFunction unresolvedFunction) {
      checkFunction(Plans.list(unresolvedFunction.nameParts()));
    } else if (part instanceof UnresolvedAttribute unresolvedAttribute) {
      checkName(Plans.list(unresolvedAttribute.nameParts()), names);
    } else if (part instanceof UnresolvedNamedLambdaVariable unresolvedNamedLambdaVariable) {
      checkName(Plans.list(unresolvedNamedLambdaVariable.nameParts()), names);
    } else if (part instanceof LambdaFunction lambdaFunction) {
      known = new HashSet<>(names);
      for (NamedExpression parameter : Plans.list(lambdaFunction.arguments())) {
        known.add(key(((UnresolvedNamedLambdaVariable) parameter).nameParts().head()));
      }
    } else if (!PARTS.contains(partOf(part)) && !(MOMENTS.contains(partOf(part)) && mayChange())) {
      throw refused("it has a part that is not allowed there (" + partOf(part) + ")");
    }
    for (Expression child : Plans.list(part.children())) {
      check(child, known);
    }
  }

  private void checkFunction(List<String> parts) {
    String function = String.join(".", parts);
    if (!mayCall(function)) {
      throw refused("it calls the function " + function + ", which is not allowed there");
    }
  }

  private void checkName(List<String> parts, Set<String> names) {
    // A name without parentheses can be a function, unless a column has the name.
    boolean isKnown = names.contains(key(parts.get(0)));
    if (!isKnown && !(parts.size() == 1 && RuleFunctions.ofMoment(parts.get(0)) && mayChange())) {
      throw refused(
          kind.equals(DEFAULT) && names.isEmpty()
              ? "it reads " + String.join(".", parts) + ", but a default value has no columns"
              : "the table has no column " + String.join(".", parts));
    }
  }

  private boolean mayCall(String function) {
    return RuleFunctions.always(function) || (mayChange() && RuleFunctions.ofMoment(function));
  }

  /**
   * Returns whether the value may depend on the time of the statement. Generated columns are
   * checked for this later.
   */
  private boolean mayChange() {
    return !kind.equals(GENERATED);
  }

  private static String key(String name) {
    return SQLConf.get().caseSensitiveAnalysis() ? name : name.toLowerCase(java.util.Locale.ROOT);
  }

  private static String partOf(Expression part) {
    Class<?> type = part.getClass();
    while (type.isAnonymousClass()) {
      type = type.getSuperclass();
    }
    return type.getSimpleName();
  }

  private static String firstLine(Exception e) {
    String[] lines = String.valueOf(e.getMessage()).trim().split("\n");
    return lines[0].trim();
  }

  private RuleRefusal refused(String reason) {
    return new RuleRefusal(table, kind, name, sql, reason);
  }
}
