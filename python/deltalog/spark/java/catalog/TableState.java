package io.deltalog.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** What the log says about one version of a table: its files as a relation, its properties, and its clustering. */
public class TableState {
  private final DeltalogRelation relation;
  private final Map properties;
  private final List clustering = new ArrayList();

  /** Creates the state; clustering has the path of each clustering column. */
  public TableState(DeltalogRelation relation, scala.collection.immutable.Map properties, Seq clustering) {
    this.relation = relation;
    this.properties = new HashMap(scala.jdk.javaapi.CollectionConverters.asJava(properties));
    Iterator columns = clustering.iterator();
    while (columns.hasNext()) {
      this.clustering.add(columns.next());
    }
  }

  public DeltalogRelation relation() {
    return relation;
  }

  public Map properties() {
    return properties;
  }

  /** Returns the path of each clustering column, a Seq of names. */
  public List clustering() {
    return clustering;
  }
}
