package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.*;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The clauses of a MERGE that may add columns, after its two tables were resolved. See
 * MergeEvolution.
 */
public class EvolvedClauses {
  private final MergeIntoTable statement;
  private final List<Attribute> target;
  private final List<Attribute> source;

  /** The attributes of columns that are added or get another type, by their names in lower case. */
  private final Map<String, Attribute> evolved = new HashMap<>();

  private final EvolvedTarget made;

  /** Asks Python which columns the statement adds or changes. */
  public EvolvedClauses(SparkSession session, MergeIntoTable statement) {
    this.statement = statement;
    this.target = Plans.list(statement.targetTable().output());
    this.source = Plans.list(statement.sourceTable().output());
    List<String[]> paths = new ArrayList<>();
    boolean updatesAll = addPaths(statement.matchedActions(), paths);
    boolean hasStar = addPaths(statement.notMatchedActions(), paths) || updatesAll;
    List<StructField> fields = new ArrayList<>();
    for (Attribute column : source) {
      fields.add(new StructField(column.name(), column.dataType(), true, Metadata.empty()));
    }
    StructType all = new StructType(fields.toArray(new StructField[0]));
    String data = assigned(all, new ArrayList<>(), paths, hasStar).json();
    String planner = StatementTarget.of(statement).relation().planner();
    StructType changed = (StructType) DataType.fromJson(Bridge.statements().evolved(planner, data));
    StructField[] columns = changed.fields();
    Attribute[] attributes = new Attribute[columns.length];
    String prefix = unusedPrefix();
    for (int i = 0; i < columns.length; i++) {
      attributes[i] =
          new AttributeReference(
              prefix + columns[i].name(),
              columns[i].dataType(),
              columns[i].nullable(),
              columns[i].metadata(),
              NamedExpression$.MODULE$.newExprId(),
              Plans.none());
      evolved.put(columns[i].name().toLowerCase(Locale.ROOT), attributes[i]);
    }
    made = new EvolvedTarget(statement.targetTable(), attributes, changed.fieldNames(), data);
  }

  /** Returns a prefix with which no column's name begins. */
  private String unusedPrefix() {
    List<Attribute> columns = new ArrayList<>(target);
    columns.addAll(source);
    String prefix = "__deltalog_evolved ";
    for (Attribute each : columns) {
      while (each.name().toLowerCase(Locale.ROOT).startsWith(prefix)) {
        prefix += "_";
      }
    }
    return prefix;
  }

  /** Returns the statement with resolved columns; Spark's analyzer resolves the rest. */
  public MergeIntoTable statement() {
    Map<String, Object> changes = new HashMap<>();
    changes.put("targetTable", made);
    changes.put("matchedActions", actions(statement.matchedActions(), true));
    changes.put("notMatchedActions", actions(statement.notMatchedActions(), true));
    changes.put("notMatchedBySourceActions", actions(statement.notMatchedBySourceActions(), false));
    changes.put("withSchemaEvolution", false);
    try {
      return (MergeIntoTable) CaseClass.with((scala.Product) (Object) statement, changes);
    } catch (Exception e) {
      throw new IllegalStateException("deltalog cannot use this version of Spark's MERGE: " + e, e);
    }
  }

  /**
   * Adds the paths of the columns and fields that clauses assign; returns whether one of the
   * clauses assigns all columns.
   */
  private boolean addPaths(Seq<MergeAction> actions, List<String[]> paths) {
    boolean hasStar = false;
    for (MergeAction action : Plans.each(actions)) {
      hasStar = hasStar || action instanceof UpdateStarAction || action instanceof InsertStarAction;
      for (Assignment assignment : Plans.each(assignments(action))) {
        String[] path = path(assignment.key(), true);
        if (path != null) {
          paths.add(path);
        }
      }
    }
    return hasStar;
  }

  private static Seq<Assignment> assignments(Object action) {
    if (action instanceof UpdateAction updateAction) {
      return updateAction.assignments();
    }
    return action instanceof InsertAction insertAction ? insertAction.assignments() : Plans.none();
  }

  /**
   * Returns the path of an assigned column or field in the table or, if columns may be added, in
   * the source. Null if there is none, or if the column is already resolved.
   */
  private String[] path(Expression key, boolean adds) {
    if (!(key instanceof UnresolvedAttribute unresolvedAttribute)) {
      return null;
    }
    String[] parts = Plans.list(unresolvedAttribute.nameParts()).toArray(new String[0]);
    String[] path = path(target, parts);
    return path != null || !adds ? path : path(source, parts);
  }

  /**
   * Returns the path of a name without its qualifier, with the column's own spelling; null if no
   * column has this name.
   */
  private static String[] path(List<Attribute> columns, String[] parts) {
    for (int qualifier = parts.length - 1; qualifier >= 0; qualifier--) {
      for (Attribute column : columns) {
        if (column.name().equalsIgnoreCase(parts[qualifier])
            && isQualified(column, parts, qualifier)) {
          String[] path = Arrays.copyOfRange(parts, qualifier, parts.length);
          path[0] = column.name();
          if (field(column, path) != null) {
            return path;
          }
        }
      }
    }
    return null;
  }

  /** Returns whether the first parts are the end of a column's qualifier. */
  private static boolean isQualified(Attribute column, String[] parts, int count) {
    List<String> qualifier = Plans.list(column.qualifier());
    for (int i = 1; i <= count; i++) {
      int at = qualifier.size() - i;
      if (at < 0 || !qualifier.get(at).equalsIgnoreCase(parts[count - i])) {
        return false;
      }
    }
    return true;
  }

  /**
   * Returns the field of a column at a path that begins with the column's name; null if there is
   * none.
   */
  private static Expression field(Expression column, String[] path) {
    Expression found = column;
    for (int i = 1; i < path.length; i++) {
      DataType type = found.dataType();
      int at = type instanceof StructType structType ? FieldFit.indexOf(structType, path[i]) : -1;
      if (at < 0) {
        return null;
      }
      found = new GetStructField(found, at, Option.apply(((StructType) type).fields()[at].name()));
    }
    return found;
  }

  /** Returns the part of the source's columns that clauses assign. */
  private static StructType assigned(
      StructType columns, List<String> base, List<String[]> paths, boolean hasStar) {
    List<StructField> kept = new ArrayList<>();
    for (int i = 0; i < columns.fields().length; i++) {
      StructField field = columns.fields()[i];
      List<String> path = new ArrayList<>(base);
      path.add(field.name());
      boolean isAssigned = false;
      boolean hasAssigned = false;
      for (String[] other : paths) {
        if (isPrefix(path, other)) {
          isAssigned = isAssigned || other.length == path.size();
          hasAssigned = true;
        }
      }
      if (isAssigned) {
        kept.add(field);
      } else if (field.dataType() instanceof StructType inner && (hasAssigned || hasStar)) {
        StructType parts = assigned(inner, path, paths, hasStar);
        kept.add(new StructField(field.name(), parts, true, Metadata.empty()));
      } else if (hasStar) {
        kept.add(field);
      }
    }
    return new StructType(kept.toArray(new StructField[0]));
  }

  private static boolean isPrefix(List<String> path, String[] other) {
    for (int i = 0; i < path.size(); i++) {
      if (i >= other.length || !path.get(i).equalsIgnoreCase(other[i])) {
        return false;
      }
    }
    return true;
  }

  private Seq<MergeAction> actions(Seq<MergeAction> actions, boolean adds) {
    List<MergeAction> changed = new ArrayList<>();
    for (MergeAction mergeAction : Plans.each(actions)) {
      changed.add(action(mergeAction, adds));
    }
    return Plans.seq(changed);
  }

  private MergeAction action(MergeAction action, boolean adds) {
    if (action instanceof DeleteAction) {
      return action;
    }
    boolean isStar = action instanceof UpdateStarAction || action instanceof InsertStarAction;
    boolean isUpdate = action instanceof UpdateStarAction || action instanceof UpdateAction;
    Class<? extends MergeAction> type = isUpdate ? UpdateAction.class : InsertAction.class;
    Seq<Assignment> assigned = isStar ? all(isUpdate) : explicit(assignments(action), adds);
    try {
      return (MergeAction) CaseClass.create(type, action.condition(), assigned);
    } catch (Exception e) {
      throw new IllegalStateException("deltalog cannot use this version of Spark's MERGE: " + e, e);
    }
  }

  /** Returns the assignments of all columns of the source. */
  private Seq<Assignment> all(boolean isUpdate) {
    List<Assignment> made = new ArrayList<>();
    for (Attribute value : source) {
      Expression key = column(value.name());
      Expression old = isUpdate ? (Expression) named(target, value.name()) : null;
      made.add(new Assignment(key, fitted(value, key, old)));
    }
    return Plans.seq(made);
  }

  /**
   * Returns the assignments as they were written, with columns resolved as far as they are known.
   */
  private Seq<Assignment> explicit(Seq<Assignment> assignments, boolean adds) {
    List<Assignment> made = new ArrayList<>();
    for (Assignment assignment : Plans.each(assignments)) {
      String[] path = path(assignment.key(), adds);
      Expression column = path == null ? null : column(path[0]);
      Expression key = column == null ? null : field(column, path);
      made.add(
          key == null ? assignment : new Assignment(key, fitted(assignment.value(), key, null)));
    }
    return Plans.seq(made);
  }

  private static Expression fitted(Expression value, Expression key, Expression old) {
    boolean isDefault =
        value instanceof UnresolvedAttribute unresolvedAttribute
            && unresolvedAttribute.name().equalsIgnoreCase("DEFAULT");
    return isDefault || !FieldFit.hasFields(key.dataType())
        ? value
        : new EvolvedValue(value, old, key.dataType());
  }

  /** Returns the column with this name as it is after the statement; null if there is none. */
  private Attribute column(String name) {
    Attribute changed = evolved.get(name.toLowerCase(Locale.ROOT));
    return changed == null ? named(target, name) : changed;
  }

  private static Attribute named(List<Attribute> columns, String name) {
    for (Attribute column : columns) {
      if (column.name().equalsIgnoreCase(name)) {
        return column;
      }
    }
    return null;
  }
}
