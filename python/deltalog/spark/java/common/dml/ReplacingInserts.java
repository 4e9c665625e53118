package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.CreateArray$;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Explode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import scala.Option;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * Turns INSERT … REPLACE ON and REPLACE USING, which were added to Spark's grammar in 4.2, into a
 * MERGE: rows of the table that match a row of the query are deleted, and all rows of the query are
 * inserted.
 *
 * <p>A MERGE only inserts rows without a match. Therefore each row of the query, which is evaluated
 * once, occurs twice: once to match without being inserted, and once to be inserted without ever
 * matching.
 */
public class ReplacingInserts extends Rule<LogicalPlan> {
  private static final int MATCHES = 0;
  private static final int IS_INSERTED = 1;

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof InsertIntoStatement insert)
        || !(insert.table() instanceof DataSourceV2Relation relation)
        || !(relation.table() instanceof DeltalogTable)
        || !insert.query().resolved()) {
      return plan;
    }
    // Only Spark 4.2 and later have this field. REPLACE WHERE is an overwrite, and is left to
    // Spark.
    Object given = CaseClass.field((Product) plan, "replaceCriteriaOpt");
    Product criteria =
        given instanceof Option<?> option && option.isDefined() ? (Product) option.get() : null;
    boolean isOn = criteria != null && criteria.productPrefix().equals("InsertReplaceOn");
    if (!isOn && (criteria == null || !criteria.productPrefix().equals("InsertReplaceUsing"))) {
      return plan;
    }
    List<Attribute> values = Plans.list(insert.query().output());
    List<String> names = names(insert, relation, values.size());
    Expression condition =
        isOn
            ? (Expression) criteria.productElement(0)
            : using(
                relation,
                Plans.list(Unchecked.<Seq<String>>cast(criteria.productElement(0))),
                names,
                values);
    Option<String> alias = isOn ? Unchecked.cast(criteria.productElement(1)) : Option.empty();
    boolean evolves = SchemaEvolution.isAsked(plan);
    MergeIntoTable merge =
        merge(aliased(relation, alias), insert.query(), condition, names, values, evolves);
    return evolves ? new EvolvingMerge(merge.targetTable(), merge.sourceTable(), merge) : merge;
  }

  /**
   * Returns the MERGE that deletes rows of a table that match a row of a query, and inserts the
   * values of all rows of the query.
   */
  static MergeIntoTable merge(
      LogicalPlan target,
      LogicalPlan query,
      Expression condition,
      List<String> names,
      List<? extends Expression> values,
      boolean evolves) {
    Attribute part = part();
    MergeIntoTable merge =
        new MergeIntoTable(
            target,
            doubled(query, part),
            new And(is(part, MATCHES), condition),
            Plans.seq(List.of(new DeleteAction(Option.empty()))),
            Plans.seq(List.of(inserted(part, names, values))),
            Plans.none(),
            evolves);
    if (!evolves) {
      MergeEvolution.keepSchema(merge);
    }
    return merge;
  }

  /** Returns, for each column of the query, the name of the table's column or of a new column. */
  private static List<String> names(
      InsertIntoStatement insert, DataSourceV2Relation table, int count) {
    List<String> columns = List.of(table.table().schema().fieldNames());
    List<String> given = Plans.list(insert.userSpecifiedCols());
    List<String> names = new ArrayList<>(given.isEmpty() ? columns : given);
    List<Attribute> output = Plans.list(insert.query().output());
    if (insert.byName()) {
      names.clear();
    }
    boolean mayAdd = insert.byName() || (given.isEmpty() && SchemaEvolution.isAsked(insert));
    for (int i = names.size(); mayAdd && i < count; i++) {
      names.add(output.get(i).name());
    }
    if (names.size() != count) {
      throw Bridge.refusals()
          .arguments("INSERT", "the query has " + count + " columns, but needs " + names.size());
    }
    return names;
  }

  private static Attribute part() {
    return new AttributeReference(
        "__deltalog_part",
        DataTypes.IntegerType,
        false,
        Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(),
        Plans.none());
  }

  private static Expression is(Attribute part, int value) {
    return new EqualTo(part, Plans.integer(value));
  }

  /**
   * Returns the condition that a row of the table and a row of the query have equal values in the
   * given columns. Each column must have the same position in the table and in the query.
   */
  private static Expression using(
      DataSourceV2Relation table,
      List<String> columns,
      List<String> names,
      List<Attribute> values) {
    Expression equal = null;
    for (String column : columns) {
      Attribute known = column(Plans.list(table.output()), column);
      int at = -1;
      for (int i = 0; i < names.size(); i++) {
        at = names.get(i).equalsIgnoreCase(column) ? i : at;
      }
      Attribute named = column(values, column);
      if (known == null || at < 0 || (named != null && named != values.get(at))) {
        throw Bridge.refusals()
            .arguments(
                "REPLACE USING",
                "the column " + column + " is not in the same place in the table and in the query");
      }
      Expression same = new EqualTo(known, (Expression) values.get(at));
      equal = equal == null ? same : new And(equal, same);
    }
    return equal;
  }

  static Attribute column(List<Attribute> columns, String name) {
    for (Attribute column : columns) {
      if (column.name().equalsIgnoreCase(name)) {
        return column;
      }
    }
    return null;
  }

  private static InsertAction inserted(
      Attribute part, List<String> names, List<? extends Expression> values) {
    List<Assignment> assignments = new ArrayList<>();
    for (int i = 0; i < names.size(); i++) {
      Expression column = new UnresolvedAttribute(Plans.seq(List.of(names.get(i))));
      assignments.add(new Assignment(column, (Expression) values.get(i)));
    }
    return new InsertAction(Option.apply(is(part, IS_INSERTED)), Plans.seq(assignments));
  }

  private static LogicalPlan aliased(DataSourceV2Relation table, Option<String> alias) {
    List<String> parts = new ArrayList<>();
    if (alias.isDefined()) {
      parts.add(alias.get());
    } else if (table.identifier().isDefined()) {
      Identifier name = table.identifier().get();
      parts.add(TableNames.SESSION_CATALOG);
      parts.addAll(List.of(name.namespace()));
      parts.add(name.name());
    }
    return parts.isEmpty() ? table : SubqueryAlias$.MODULE$.apply(Plans.seq(parts), table);
  }

  /**
   * Returns each row of the query twice: once for MATCHES, and once for IS_INSERTED. The alias of
   * the query is kept.
   */
  private static LogicalPlan doubled(LogicalPlan query, Attribute part) {
    if (query instanceof SubqueryAlias alias) {
      LogicalPlan rows = doubled(alias.child(), part);
      return alias.withNewChildren(Plans.seq(List.of(rows)));
    }
    List<Expression> numbers = List.of(Plans.integer(MATCHES), Plans.integer(IS_INSERTED));
    Expression array = CreateArray$.MODULE$.apply(Plans.seq(numbers));
    Seq<Object> none = Plans.none();
    Seq<Attribute> output = Plans.seq(List.of(part));
    return new Generate(new Explode(array), none, false, Option.empty(), output, query);
  }
}
