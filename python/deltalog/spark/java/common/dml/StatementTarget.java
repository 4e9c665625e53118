package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute$;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils$;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The table that a DELETE, UPDATE or MERGE changes, at the version that the statement reads. */
public class StatementTarget {
  private final DeltalogRelation relation;
  private final LogicalPlan leaf;
  private final LogicalPlan plan;

  private StatementTarget(DeltalogRelation relation, LogicalPlan leaf, LogicalPlan plan) {
    this.relation = relation;
    this.leaf = leaf;
    this.plan = plan;
  }

  /** Returns whether the plan is a statement that changes rows of a deltalog table. */
  public static boolean isStatement(Object plan) {
    return (plan instanceof DeleteFromTable
            || plan instanceof UpdateTable
            || plan instanceof MergeIntoTable)
        && of((LogicalPlan) plan) != null;
  }

  /**
   * Returns the target of an analyzed or optimized statement; null if it is not a deltalog table.
   */
  public static StatementTarget of(LogicalPlan statement) {
    if (statement.children().isEmpty()) {
      return null;
    }
    LogicalPlan plan = statement.children().head();
    LogicalPlan leaf = leaf(plan);
    return leaf == null ? null : new StatementTarget(relation(leaf), leaf, plan);
  }

  /** Returns the relation of the table in the plan of a target, which reads no other relation. */
  private static LogicalPlan leaf(LogicalPlan plan) {
    if (relation(plan) != null) {
      return plan;
    }
    for (LogicalPlan child : Plans.each(plan.children())) {
      LogicalPlan found = leaf(child);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  /**
   * Returns the plan of the target with other rows in place of the relation, and with more columns.
   * Projections that pad char columns are kept, but names of the target and EvolvedTarget are not.
   */
  public LogicalPlan over(LogicalPlan rows, List<Attribute> more) {
    return over(plan, rows, more);
  }

  /** Returns whether the target is a table, rather than a view of a table. */
  public boolean isTable() {
    try {
      over(leaf, List.of());
      return true;
    } catch (UnsupportedOperationException e) {
      return false;
    }
  }

  private LogicalPlan over(LogicalPlan node, LogicalPlan rows, List<Attribute> more) {
    if (node == leaf) {
      return rows;
    }
    if (node instanceof EvolvedTarget) {
      return over(node.children().head(), rows, more);
    }
    if (node instanceof SubqueryAlias subqueryAlias) {
      return over(subqueryAlias.child(), rows, more);
    }
    if (node instanceof Project project && onlyPads(project)) {
      List<NamedExpression> columns = Plans.list(project.projectList());
      columns.addAll(more);
      return new Project(Plans.seq(columns), over(project.child(), rows, more));
    }
    throw new UnsupportedOperationException(node.nodeName());
  }

  private static DeltalogRelation relation(LogicalPlan plan) {
    if (plan instanceof LogicalRelation logicalRelation) {
      Object relation = logicalRelation.relation();
      return relation instanceof DeltalogRelation deltalogRelation ? deltalogRelation : null;
    }
    if (plan instanceof DataSourceV2ScanRelation dataSourceV2ScanRelation) {
      return relation((LogicalPlan) (Object) dataSourceV2ScanRelation.relation());
    }
    if (plan instanceof DataSourceV2Relation dataSourceV2Relation) {
      Object table = dataSourceV2Relation.table();
      return table instanceof DeltalogTable deltalogTable ? deltalogTable.relation() : null;
    }
    return null;
  }

  /**
   * Returns whether a projection shows the table's columns unchanged, apart from the padding of
   * char columns.
   */
  private boolean onlyPads(Project node) {
    for (NamedExpression column : Plans.each(node.projectList())) {
      Iterator<Attribute> read = ((Expression) column).references().iterator();
      Attribute first = read.hasNext() ? read.next() : null;
      if (first == null
          || read.hasNext()
          || !leaf.outputSet().contains(first)
          || !first.name().equals(column.name())) {
        return false;
      }
      boolean isPadded = CharVarcharUtils$.MODULE$.getRawType(first.metadata()).isDefined();
      if (!isPadded && !(column instanceof Attribute)) {
        return false;
      }
    }
    return true;
  }

  /**
   * Returns the conjuncts of a condition that read only columns with the same values as in the
   * files. Padded values must not be compared with the statistics of files.
   */
  public Seq<Expression> stored(Expression condition) {
    List<Expression> found = new ArrayList<>();
    List<Expression> parts = Plans.conjuncts(Plans.simplified(condition, leaf));
    for (Expression part : parts) {
      if (part.references().subsetOf(leaf.outputSet())) {
        found.add(part);
      }
    }
    return Plans.seq(found);
  }

  /**
   * Returns the text of a condition if it has the same meaning in deltalog and in Spark; otherwise
   * null. The condition must not read padded values, or anything other than the row, and the
   * session must use ANSI SQL, because deltalog knows only its rules.
   */
  public String exact(Expression condition) {
    Expression simple = Plans.simplified(condition, leaf);
    boolean isAboutRows =
        simple.references().subsetOf(leaf.outputSet()) && !SubqueryExpression.hasSubquery(simple);
    return isAboutRows && SQLConf.get().ansiEnabled() ? FilterText.exactOrNull(simple) : null;
  }

  /** Returns whether an expression of the statement has a subquery. */
  public static boolean hasSubquery(LogicalPlan statement) {
    for (Expression expression : Plans.each(statement.expressions())) {
      if (SubqueryExpression.hasSubquery(expression)) {
        return true;
      }
    }
    return false;
  }

  /**
   * Returns the name, for use in SQL, of a table in deltalog's catalog; null for a table that is
   * read by a path.
   */
  public String name() {
    LogicalPlan source = leaf;
    if (source instanceof DataSourceV2ScanRelation scan) {
      source = (LogicalPlan) (Object) scan.relation();
    }
    boolean isNamed =
        source instanceof DataSourceV2Relation
            && ((DataSourceV2Relation) source).identifier().isDefined();
    return isNamed ? ((DataSourceV2Relation) source).name() : null;
  }

  /** Returns the name of the table for messages: its name in the catalog, or its path. */
  public String label() {
    String name = name();
    return name == null ? ((DeltalogFileIndex) relation.location()).path() : name;
  }

  /** Returns the columns that the statement may add to the table; null if it adds none. */
  public EvolvedTarget evolved() {
    return EvolvedTarget.in(plan);
  }

  /** Returns the relation of the table. */
  public DeltalogRelation relation() {
    return relation;
  }

  /** Returns the column _metadata of the relation if the statement reads it, or null. */
  public Attribute metadata() {
    for (Attribute column : Plans.each(leaf.output())) {
      if (MetadataAttribute$.MODULE$.isValid(column.metadata())) {
        return column;
      }
    }
    return null;
  }

  /** Returns the columns of the relation that the statement reads. */
  public Seq<Attribute> output() {
    return leaf.output();
  }
}
