package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.immutable.Seq;

/**
 * Replaces the name of a table with its change data feed if the options of a query request the
 * feed. A function that reads the feed is replaced, too (ChangeFunctions). Both happen before Spark
 * resolves names, because Spark does not tell the catalog the options, and the feed has columns
 * that the table does not have.
 */
public class NamedChangeFeeds extends Rule<LogicalPlan> {
  private static final String[] OPTIONS = {"readChangeFeed", "readChangeData"};
  private final SparkSession session;

  public NamedChangeFeeds(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof UnresolvedRelation unresolvedRelation) {
      LogicalPlan feed = feed(unresolvedRelation);
      return feed == null ? plan : feed;
    }
    if (plan instanceof UnresolvedTableValuedFunction function) {
      return feed(function);
    }
    List<LogicalPlan> children = Plans.list(plan.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      LogicalPlan child = children.get(i);
      children.set(i, apply(child));
      isSame = isSame && children.get(i) == child;
    }
    return isSame ? plan : plan.withNewChildren(Plans.seq(children));
  }

  /**
   * Returns the change data feed that a function reads; any other function is returned unchanged.
   */
  private LogicalPlan feed(UnresolvedTableValuedFunction function) {
    UnresolvedRelation relation = ChangeFunctions.relation(session, function);
    if (relation == null) {
      return function;
    }
    LogicalPlan feed = feed(relation);
    TableIdentifier name =
        TableNames.identifier(session, completed(Plans.list(relation.multipartIdentifier())));
    if (feed == null && (name == null || session.sessionState().catalog().tableExists(name))) {
      throw Bridge.refusals().table(relation.name(), "it is not in the session catalog");
    }
    return feed == null ? relation : feed; // Spark raises the error that there is no such table.
  }

  /**
   * Returns the change data feed; null if the query reads the rows of the table, or a table that is
   * not deltalog's.
   */
  private LogicalPlan feed(UnresolvedRelation relation) {
    if (!isAskedFor(relation.options()) || relation.isStreaming()) {
      return null;
    }
    List<String> given = Plans.list(relation.multipartIdentifier());
    TableIdentifier found = TableNames.identifier(session, completed(given));
    if (found == null) {
      return null;
    }
    SessionCatalog catalog = session.sessionState().catalog();
    if (catalog.isView(found.nameParts()) || isViewOfView(given)) {
      throw Bridge.refusals()
          .table(found.unquotedString(), "it is a view, which has no change data feed");
    }
    String database =
        found.database().isDefined() ? found.database().get() : catalog.getCurrentDatabase();
    String[] namespace = {database};
    Identifier name = Identifier.of(namespace, found.table());
    Map<String, String> options = CatalogEntries.options(name);
    if (options == null) {
      return null;
    }
    String path = options.get("path");
    options.putAll(relation.options().asCaseSensitiveMap());
    options.put("path", path);
    String described = Bridge.tables().read(session, TableOptions.json(options), null);
    BaseRelation feed =
        RelationDescription.relation(session, described, TableOptions.scala(options));
    LogicalPlan plan = session.baseRelationToDataFrame(feed).queryExecution().analyzed();
    String[] qualified = {TableNames.SESSION_CATALOG, database, found.table()};
    return SubqueryAlias$.MODULE$.apply(Plans.seq(Arrays.asList(qualified)), plan);
  }

  /** Qualifies a name in a view with the catalog and the namespace of the view. */
  private static List<String> completed(List<String> parts) {
    List<String> place = Plans.list(AnalysisContext$.MODULE$.get().catalogAndNamespace());
    if (place.isEmpty() || parts.size() > 2) {
      return parts;
    }
    List<String> all = new ArrayList<>(parts.size() == 1 ? place : place.subList(0, 1));
    all.addAll(parts);
    return all;
  }

  /**
   * Returns whether a name in a view belongs to a temporary view, which hides the tables of that
   * name.
   */
  private static boolean isViewOfView(List<String> parts) {
    List<Seq<String>> hiding = Plans.list(AnalysisContext$.MODULE$.get().referredTempViewNames());
    for (Seq<String> each : hiding) {
      if (parts.equals(Plans.list(each))) {
        return true;
      }
    }
    return false;
  }

  private static boolean isAskedFor(CaseInsensitiveStringMap options) {
    for (String each : OPTIONS) {
      String value = options.get(each);
      if (value != null && value.trim().equalsIgnoreCase("true")) {
        return true;
      }
    }
    return false;
  }
}
