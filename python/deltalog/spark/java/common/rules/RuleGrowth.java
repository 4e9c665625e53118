package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.HigherOrderFunction;
import org.apache.spark.sql.catalyst.expressions.LambdaFunction;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedLambdaVariable;
import org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable;
import org.apache.spark.sql.types.ObjectType;

/**
 * Limits the size of the values in an expression of a table. `repeat('x', 2000000000)` is a short
 * expression with a large value, and so is a `replace` inside another `replace`.
 *
 * <p>An expression is not changed if each of its functions returns values that are at most as large
 * as all of its arguments together. In any other expression, each value of variable size is
 * limited.
 */
public class RuleGrowth {
  /** Expressions that compute only some of their operands, and return the value of one of them. */
  private static final Set<String> CHOICES =
      Set.of(
          "If", "CaseWhen", "Coalesce", "Elt", "TryEval", "Alias", "With", "CommonExpressionDef");

  /** Functions whose values are at most about as large as all their arguments together. */
  private static final Set<String> SAFE =
      Set.of(
          "Cast",
          "Upper",
          "Lower",
          "InitCap",
          "StringTrim",
          "StringTrimLeft",
          "StringTrimRight",
          "Substring",
          "SubstringIndex",
          "Concat",
          "DateFormatClass",
          "FromUnixTime",
          "Collate",
          "Reverse",
          "RegExpExtract",
          "GetStructField",
          "GetArrayItem",
          "GetMapValue",
          "ElementAt",
          "CreateNamedStruct",
          "CreateArray",
          "CreateMap",
          "Md5",
          "Sha1",
          "Sha2");

  /** The maximum size, in bytes, of a constant that is computed once. */
  private static final long OF_CONSTANT = 1 << 20;

  private final RuleAllowance allowance;

  private RuleGrowth(RuleAllowance allowance) {
    this.allowance = allowance;
  }

  /** Returns whether a value may be much larger than the operands of the expression. */
  public static boolean isIn(Expression part) {
    Expression made = replaced(part);
    String name = made.getClass().getSimpleName();
    boolean mayGrow =
        made instanceof HigherOrderFunction
            || (isComputed(made) && !CHOICES.contains(name) && !SAFE.contains(name));
    List<Expression> children = Plans.list(made.children());
    for (int i = 0; i < children.size() && !mayGrow; i++) {
      mayGrow = isIn(children.get(i));
    }
    return mayGrow;
  }

  /** Returns the expression with all its values limited. */
  public static Expression bounded(Expression expression, RuleAllowance allowance) {
    Expression within = new RuleGrowth(allowance).within(expression);
    return reference(within, allowance);
  }

  /** Returns whether the value is always the same and can be computed before there are rows. */
  public static boolean isKnown(Expression part) {
    Expression made = replaced(part);
    List<Expression> children = Plans.list(made.children());
    boolean isKnown =
        children.isEmpty()
            ? made instanceof Literal || made instanceof NamedLambdaVariable
            : !made.getClass().getSimpleName().equals("With");
    for (int i = 0; i < children.size() && isKnown; i++) {
      isKnown = isKnown(children.get(i));
    }
    return isKnown;
  }

  /** Returns the expression with which Spark's optimizer replaces the given one. */
  private static Expression replaced(Expression part) {
    Expression made = part;
    while (made instanceof RuntimeReplaceable replaceable) {
      made = replaceable.replacement();
    }
    return made;
  }

  private static boolean isComputed(Expression part) {
    return !part.children().isEmpty()
        && !(part instanceof LambdaFunction)
        && ValueSize.varies(part.dataType());
  }

  private Expression within(Expression part) {
    Expression made = replaced(part);
    List<Expression> children = Plans.list(made.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      Expression child = within(children.get(i));
      isSame = isSame && child == children.get(i);
      children.set(i, child);
    }
    if (made instanceof LambdaFunction function && ValueSize.varies(function.dataType())) {
      // Functions that call the lambda function keep a copy of each of its values.
      children.set(0, reference(children.get(0), allowance));
      isSame = false;
    }
    made = isSame ? made : made.withNewChildren(Plans.seq(children));
    if (!isComputed(made) || CHOICES.contains(made.getClass().getSimpleName())) {
      return made;
    }
    return made instanceof HigherOrderFunction ? reference(made, allowance) : call(made);
  }

  /** Returns a value that is computed together with its operands, and whose size is counted. */
  private static Expression reference(Expression value, RuleAllowance allowance) {
    Expression reference = new BoundReference(0, value.dataType(), value.nullable());
    return new BoundedValue(reference, new Expression[] {value}, allowance);
  }

  private Expression call(Expression made) {
    List<Expression> operands = new ArrayList<>();
    List<Expression> arguments = Plans.list(made.children());
    for (int i = 0; i < arguments.size(); i++) {
      Expression argument = arguments.get(i);
      if (!isConstant(argument)) {
        arguments.set(
            i, new BoundReference(operands.size(), argument.dataType(), argument.nullable()));
        operands.add(argument);
      }
    }
    Expression call = made.withNewChildren(Plans.seq(arguments));
    Expression[] given = operands.toArray(new Expression[0]);
    BoundedValue value = new BoundedValue(call, given, allowance);
    return given.length == 0 ? constant(value) : value;
  }

  /** Returns whether a value needs no computation for each row and no limit. */
  private static boolean isConstant(Expression part) {
    return part instanceof Literal || part.dataType() instanceof ObjectType;
  }

  /** Computes a value that is made of constants, and returns it as a constant if it is small. */
  private Expression constant(BoundedValue value) {
    allowance.enter();
    try {
      Object computed = value.eval(null);
      boolean isSmall = ValueSize.of(computed, value.dataType(), OF_CONSTANT) <= OF_CONSTANT;
      return isSmall ? new Literal(computed, value.dataType()) : value;
    } catch (RuntimeException e) {
      return value; // The error must only be raised for rows that need the value.
    } finally {
      allowance.leave();
    }
  }
}
