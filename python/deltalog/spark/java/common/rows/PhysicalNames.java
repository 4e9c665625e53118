package io.deltalog.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.QuotingUtils;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.*;
import scala.Product;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Maps the table's columns to their names in data files, and to their field ids if the table maps
 * columns by id. (PROTOCOL, "Reader Requirements for Column Mapping".)
 *
 * <p>The logical schema is the one that users see. The physical schema has the same shape, with the
 * names in the files. Columns that are not in the logical schema, such as those that Spark
 * generates, keep their names.
 */
public class PhysicalNames implements Serializable {
  private final StructType logical;
  private final StructType physical;

  public PhysicalNames(StructType logical, StructType physical) {
    this.logical = logical;
    this.physical = physical;
  }

  /** Returns a part of the table's schema, with the names that its columns have in files. */
  public StructType of(StructType part) {
    return struct(part, logical, physical);
  }

  private static StructType struct(StructType part, StructType logical, StructType physical) {
    StructField[] fields = new StructField[part.length()];
    for (int i = 0; i < fields.length; i++) {
      StructField field = part.fields()[i];
      fields[i] = field;
      int at = indexOf(logical, field.name());
      if (at >= 0) {
        StructField stored = physical.fields()[at];
        DataType type = type(field.dataType(), logical.fields()[at].dataType(), stored.dataType());
        fields[i] = new StructField(stored.name(), type, field.nullable(), stored.metadata());
      }
    }
    return new StructType(fields);
  }

  private static DataType type(DataType part, DataType logical, DataType physical) {
    if (part instanceof StructType struct && logical instanceof StructType named) {
      return struct(struct, named, (StructType) physical);
    }
    if (part instanceof ArrayType array && logical instanceof ArrayType named) {
      DataType element =
          type(array.elementType(), named.elementType(), ((ArrayType) physical).elementType());
      return new ArrayType(element, array.containsNull());
    }
    if (part instanceof MapType map && logical instanceof MapType named) {
      DataType key = type(map.keyType(), named.keyType(), ((MapType) physical).keyType());
      DataType value = type(map.valueType(), named.valueType(), ((MapType) physical).valueType());
      return new MapType(key, value, map.valueContainsNull());
    }
    return part;
  }

  private static int indexOf(StructType schema, String name) {
    scala.Option<Object> found = schema.getFieldIndex(name);
    return found.isDefined() ? (Integer) found.get() : -1;
  }

  /**
   * Returns the pushed filters with the names of the columns in files. A filter that cannot be
   * translated is left out.
   */
  public Seq<Filter> of(Seq<Filter> filters) {
    List<Filter> translated = new ArrayList<>();
    Iterator<Filter> all = filters.iterator();
    while (all.hasNext()) {
      Filter filter = (Filter) translate((Product) all.next());
      if (filter != null) {
        translated.add(filter);
      }
    }
    return Plans.seq(translated);
  }

  /** Translates a filter. Filters are case classes with one attribute or with nested filters. */
  private Object translate(Product filter) {
    Map<String, Object> changes = new HashMap<>();
    for (int i = 0; i < filter.productArity(); i++) {
      String field = filter.productElementName(i);
      Object value = filter.productElement(i);
      Object changed = value;
      if (field.equals("attribute")) {
        changed = column((String) value);
      } else if (value instanceof Filter) {
        changed = translate((Product) value);
      }
      if (changed == null && value != null) {
        return null;
      }
      if (changed != value) {
        changes.put(field, changed);
      }
    }
    try {
      return changes.isEmpty() ? filter : CaseClass.with(filter, changes);
    } catch (Exception e) {
      return null; // Spark still applies a filter to the rows if it is not pushed down.
    }
  }

  private String column(String attribute) {
    Iterator<String> parts = CatalogV2Implicits.parseColumnPath(attribute).iterator();
    StringBuilder name = new StringBuilder();
    DataType within = logical;
    DataType stored = physical;
    while (parts.hasNext()) {
      int at = within instanceof StructType struct ? indexOf(struct, parts.next()) : -1;
      if (at < 0) {
        return null;
      }
      StructField field = ((StructType) stored).fields()[at];
      name.append(name.length() == 0 ? "" : ".").append(QuotingUtils.quoteIfNeeded(field.name()));
      within = ((StructType) within).fields()[at].dataType();
      stored = field.dataType();
    }
    return name.toString();
  }
}
