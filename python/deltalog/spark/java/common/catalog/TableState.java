package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * A table at one version: its files as a relation, its properties, and its clustering.
 *
 * @param relation the relation that reads the files
 * @param columns the columns of the relation as queries see them
 * @param definition the columns with all of their rules, such as the expressions of generated
 *     columns
 * @param properties the properties of the table, and its location
 * @param protocol the protocol as properties
 * @param clustering the path of each clustering column
 */
public record TableState(
    DeltalogRelation relation,
    StructType columns,
    StructType definition,
    Map<String, String> properties,
    Map<String, String> protocol,
    List<Seq<String>> clustering) {

  /**
   * Returns the state that Python describes in JSON (`read/relation.py`), opened with these
   * options.
   */
  public static TableState of(
      SparkSession session, String json, scala.collection.immutable.Map<String, String> options) {
    Map<String, Object> parts = Json.object(json);
    RelationDescription described =
        new RelationDescription(Unchecked.<Map<String, Object>>cast(parts.get("relation")));
    Map<String, String> properties =
        new HashMap<>(Unchecked.<Map<String, String>>cast(parts.get("properties")));
    properties.put(TableCatalog.PROP_LOCATION, described.path(session));
    List<Seq<String>> clustering = new ArrayList<>();
    List<List<String>> paths = Unchecked.cast(parts.get("clustering"));
    for (List<String> path : paths) {
      clustering.add(Plans.seq(path));
    }
    DeltalogRelation relation = described.relation(session, options);
    StructType definition =
        TableDefaults.ofLog((StructType) DataType.fromJson((String) parts.get("columns")));
    return new TableState(
        relation,
        described.columns(relation),
        definition,
        properties,
        Unchecked.cast(parts.get("protocol")),
        clustering);
  }

  /** Returns the same version with another relation for its files. */
  public TableState with(DeltalogRelation other) {
    return new TableState(other, columns, definition, properties, protocol, clustering);
  }
}
