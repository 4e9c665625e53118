package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Computes an aggregate from the log instead of a scan, if the log has the exact values.
 *
 * <p>The relation is replaced by one row per partition: the partition's values, its number of rows,
 * and the minimum and maximum of columns. Spark still computes filters, groups and everything else
 * that uses partition values. The plan is changed only if all of these conditions are met:
 *
 * <ul>
 *   <li>The aggregate reads one Delta table, with only projections and filters in between.
 *   <li>The projections, the filters, the groups, and the arguments of aggregates only use
 *       partition columns. Nothing depends on individual rows or on another query.
 *   <li>Each aggregate is a count, a minimum, a maximum, or an aggregate of distinct values.
 *       Minimum and maximum may use any column.
 *   <li>The log contains all of these values exactly.
 * </ul>
 *
 * Columns are found by expression id, because a query may spell a name with a different case than
 * the table.
 */
public class LogAnswers extends NodeChange<Expression> {
  private final Aggregate aggregate;
  private final LogicalRelation source;
  private final StructType partitionSchema;
  private final Map<String, AttributeReference> least = new LinkedHashMap<>();
  private final Map<String, AttributeReference> greatest = new LinkedHashMap<>();
  private final AttributeReference rows = attribute("rows", DataTypes.LongType, false);
  private boolean possible = true;

  private LogAnswers(Aggregate aggregate, LogicalRelation source) {
    this.aggregate = aggregate;
    this.source = source;
    this.partitionSchema = ((HadoopFsRelation) source.relation()).partitionSchema();
  }

  /** Returns the aggregate to execute instead, or the given one if the log cannot answer it. */
  public static LogicalPlan instead(Aggregate aggregate) throws Exception {
    LogicalPlan plan = aggregate.child();
    while (plan instanceof Project || plan instanceof Filter) {
      plan = plan.children().head();
    }
    if (FileRelation.isScan(plan)) {
      plan = FileRelation.of((DataSourceV2ScanRelation) plan);
    }
    if (plan instanceof LogicalRelation source && source.relation() instanceof DeltalogRelation) {
      LogicalPlan answered = new LogAnswers(aggregate, source).answered();
      return answered == null ? aggregate : answered;
    }
    return aggregate;
  }

  private LogicalPlan answered() throws Exception {
    Seq<NamedExpression> expressions = all(aggregate.aggregateExpressions());
    if (!possible || !isAnswered(expressions, over(aggregate.child(), log(none())))) {
      return null;
    }
    DeltalogFileIndex index = (DeltalogFileIndex) ((HadoopFsRelation) source.relation()).location();
    PackedValues answers = index.answers(partitionFilters(), extremes().toArray(new String[0]));
    if (answers == null) {
      return null;
    }
    Map<String, Object> changes = new HashMap<>();
    changes.put("aggregateExpressions", expressions);
    changes.put("child", over(aggregate.child(), log(answers)));
    return (LogicalPlan) CaseClass.with(aggregate, changes);
  }

  private boolean isAnswered(Seq<? extends Object> expressions, LogicalPlan child) {
    return child != null
        && isOf(aggregate.groupingExpressions(), child)
        && isOf(expressions, child);
  }

  /**
   * Returns the plan below the aggregate with the rows from the log in place of the table, or null
   * if these rows are not sufficient.
   */
  private LogicalPlan over(LogicalPlan plan, LogicalPlan log) {
    if (plan.children().isEmpty()) {
      return log;
    }
    LogicalPlan child = over(plan.children().head(), log);
    if (child == null) {
      return null;
    }
    if (plan instanceof Filter filter) {
      Expression condition = filter.condition();
      return isOf(condition, child) ? new Filter(condition, child) : null;
    }
    List<NamedExpression> list = new ArrayList<>();
    for (NamedExpression column : Plans.each(((Project) plan).projectList())) {
      if (!isExtreme(column)) {
        list.add(column);
      }
    }
    list.add(rows);
    list.addAll(least.values());
    list.addAll(greatest.values());
    return isOf(seq(list), child) ? new Project(seq(list), child) : null;
  }

  /** Returns whether only the minimum or maximum of the column is needed. */
  private boolean isExtreme(Object column) {
    AttributeReference known = column(column);
    return known != null && (least.containsKey(known.name()) || greatest.containsKey(known.name()));
  }

  /** Returns the table's names of the columns whose minimum or maximum is needed. */
  private Set<String> extremes() {
    Set<String> names = new LinkedHashSet<>(least.keySet());
    names.addAll(greatest.keySet());
    return names;
  }

  /** Returns the rows of the log as a plan. */
  private LogicalPlan log(PackedValues answers) throws Exception {
    List<AttributeReference> output = new ArrayList<>();
    for (int i = 0; i < partitionSchema.length(); i++) {
      output.add(named(partitionSchema.fields()[i].name()));
    }
    output.add(rows);
    for (String name : extremes()) {
      output.add(
          least.containsKey(name)
              ? least.get(name)
              : attribute(name, named(name).dataType(), true));
      output.add(
          greatest.containsKey(name)
              ? greatest.get(name)
              : attribute(name, named(name).dataType(), true));
    }
    StructType schema = new StructType();
    for (int i = 0; i < output.size(); i++) {
      schema = schema.add("c" + i, output.get(i).dataType(), true);
    }
    List<InternalRow> data = new ArrayList<>();
    for (int left = answers.count(); left > 0; left--) {
      data.add(answers.row(schema));
    }
    return (LogicalPlan) CaseClass.create(LocalRelation.class, seq(output), seq(data));
  }

  private static PackedValues none() {
    return new PackedValues(java.nio.ByteBuffer.wrap(new byte[4]));
  }

  /** Returns the filters, with the column names spelled as in the table. */
  private Seq<Expression> partitionFilters() {
    List<Expression> filters = new ArrayList<>();
    LogicalPlan plan = aggregate.child();
    while (!plan.children().isEmpty()) {
      if (plan instanceof Filter filter
          && filter.condition().references().subsetOf(source.outputSet())) {
        filters.add(filter.condition().transform(new TableNames(this)));
      }
      plan = plan.children().head();
    }
    return seq(filters);
  }

  /** Returns the table's column with exactly this name. */
  private AttributeReference named(String name) {
    for (AttributeReference column : Plans.each(source.output())) {
      if (column.name().equals(name)) {
        return column;
      }
    }
    throw new IllegalStateException("the relation has no column " + name);
  }

  /** Returns the table's column to which an expression refers, or null for any other expression. */
  private AttributeReference column(Object expression) {
    if (!(expression instanceof AttributeReference attributeReference)) {
      return null;
    }
    ExprId id = attributeReference.exprId();
    for (AttributeReference column : Plans.each(source.output())) {
      if (column.exprId().equals(id)) {
        return column;
      }
    }
    return null;
  }

  /** Replaces column names with the table's spelling of them. */
  public static final class TableNames extends NodeChange<Expression> {
    private final LogAnswers answers;

    public TableNames(LogAnswers answers) {
      this.answers = answers;
    }

    @Override
    public boolean isDefinedAt(Expression node) {
      return answers.column(node) != null;
    }

    @Override
    protected Expression changed(Expression node) {
      return answers.column(node);
    }
  }

  /** Returns whether the expressions can be computed from the rows of the plan. */
  private static boolean isOf(Seq<?> expressions, LogicalPlan plan) {
    Iterator<?> all = expressions.iterator();
    while (all.hasNext()) {
      if (!isOf((Expression) all.next(), plan)) {
        return false;
      }
    }
    return true;
  }

  private static boolean isOf(Expression expression, LogicalPlan plan) {
    return expression.deterministic()
        && expression.references().subsetOf(plan.outputSet())
        && !SubqueryExpression$.MODULE$.hasSubquery(expression);
  }

  private Seq<NamedExpression> all(Seq<NamedExpression> expressions) {
    List<NamedExpression> changed = new ArrayList<>();
    for (NamedExpression column : Plans.each(expressions)) {
      changed.add((NamedExpression) ((Expression) column).transformUp(this));
    }
    return seq(changed);
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return node instanceof AggregateExpression;
  }

  @Override
  protected Expression changed(Expression node) {
    return aggregated((AggregateExpression) node);
  }

  /** Returns the same aggregate over the rows of the log. */
  private Expression aggregated(AggregateExpression expression) {
    AggregateFunction function = expression.aggregateFunction();
    if (function instanceof Count count) {
      return expression.isDistinct() ? (Expression) expression : counted(expression, count);
    }
    if (function instanceof Min min) {
      AttributeReference known = extreme(min.child(), least);
      return known == null ? expression : with(expression, new Min(known));
    }
    if (function instanceof Max max) {
      AttributeReference known = extreme(max.child(), greatest);
      return known == null ? expression : with(expression, new Max(known));
    }
    possible = false;
    return expression;
  }

  /** Returns the number of rows in which no counted value is NULL. */
  private Expression counted(AggregateExpression expression, Count count) {
    Expression none = Literal.create(Long.valueOf(0), DataTypes.LongType);
    Expression counted = rows;
    for (Expression value : Plans.each(count.children())) {
      if (!(value instanceof Literal literal) || literal.value() == null) {
        counted = new If(new IsNotNull(value), counted, none);
      }
    }
    List<Expression> choices = new ArrayList<>();
    choices.add(with(expression, new Sum(counted)));
    choices.add(none);
    return new Coalesce(seq(choices));
  }

  /**
   * Returns the attribute that has the minimum or maximum of a data column; null for other
   * expressions.
   */
  private AttributeReference extreme(Expression value, Map<String, AttributeReference> known) {
    AttributeReference column = column(value);
    if (column == null || partitionSchema.getFieldIndex(column.name()).isDefined()) {
      return null;
    }
    if (!known.containsKey(column.name())) {
      known.put(column.name(), attribute(column.name(), column.dataType(), true));
    }
    return known.get(column.name());
  }

  private static AggregateExpression with(
      AggregateExpression expression, AggregateFunction function) {
    return expression.copy(
        function,
        expression.mode(),
        expression.isDistinct(),
        expression.filter(),
        expression.resultId());
  }

  private static AttributeReference attribute(String name, DataType type, boolean nullable) {
    Seq<String> none = Plans.none();
    return new AttributeReference(
        name, type, nullable, Metadata.empty(), NamedExpression$.MODULE$.newExprId(), none);
  }

  private static <T> Seq<T> seq(List<? extends T> list) {
    return Plans.seq(list);
  }
}
