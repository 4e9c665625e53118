package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The state of one version of a table: its files as a relation, its properties, and its clustering.
 */
public class TableState {
  private final DeltalogRelation relation;
  private final StructType columns;
  private final StructType definition;
  private final Map properties;
  private final Map protocol;
  private final List clustering;

  private TableState(
      DeltalogRelation relation,
      StructType columns,
      StructType definition,
      Map properties,
      Map protocol,
      List clustering) {
    this.relation = relation;
    this.columns = columns;
    this.definition = definition;
    this.properties = properties;
    this.protocol = protocol;
    this.clustering = clustering;
  }

  /**
   * Returns the state that Python describes in JSON (`read/relation.py`), opened with these
   * options.
   */
  public static TableState of(
      SparkSession session, String json, scala.collection.immutable.Map options) {
    Map parts = Json.object(json);
    RelationDescription described = new RelationDescription((Map) parts.get("relation"));
    Map properties = new HashMap((Map) parts.get("properties"));
    properties.put(TableCatalog.PROP_LOCATION, described.path(session));
    List clustering = new ArrayList();
    List paths = (List) parts.get("clustering");
    for (int i = 0; i < paths.size(); i++) {
      clustering.add(Plans.seq((List) paths.get(i)));
    }
    DeltalogRelation relation = described.relation(session, options);
    StructType definition =
        TableDefaults.ofLog((StructType) DataType.fromJson((String) parts.get("columns")));
    return new TableState(
        relation,
        described.columns(relation),
        definition,
        properties,
        (Map) parts.get("protocol"),
        clustering);
  }

  /** Returns the same version, whose files another relation reads. */
  public TableState with(DeltalogRelation other) {
    return new TableState(other, columns, definition, properties, protocol, clustering);
  }

  public DeltalogRelation relation() {
    return relation;
  }

  /** Returns the columns of the relation as queries see them. */
  public StructType columns() {
    return columns;
  }

  /** Returns the columns with all that makes them, such as the expressions of generated ones. */
  public StructType definition() {
    return definition;
  }

  public Map properties() {
    return properties;
  }

  /** Returns the protocol as properties. */
  public Map protocol() {
    return protocol;
  }

  /** Returns the path of each clustering column, a Seq of names. */
  public List clustering() {
    return clustering;
  }
}
