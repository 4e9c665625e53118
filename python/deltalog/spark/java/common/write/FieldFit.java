package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Adds missing fields to struct values, so that they have all fields of the column, by name and in
 * the column's order. The JVM connector does the same where it adds columns.
 *
 * <ul>
 *   <li>A field that the value lacks becomes NULL. If there is an old value, the field keeps the
 *       value that it has there; this includes fields of structs in structs, but not of structs in
 *       arrays and maps.
 *   <li>A value that is NULL stays NULL, unless fields of an old value are kept.
 *   <li>The types of the fields are not changed; Spark casts them later.
 * </ul>
 */
public class FieldFit {
  private FieldFit() {}

  /** Returns whether a type has fields. */
  public static boolean hasFields(DataType type) {
    if (type instanceof ArrayType array) {
      return hasFields(array.elementType());
    }
    if (type instanceof MapType map) {
      return hasFields(map.keyType()) || hasFields(map.valueType());
    }
    return type instanceof StructType;
  }

  /**
   * Returns the value with all fields of the type. `old` is the value whose other fields are kept,
   * or null.
   */
  public static Expression fitted(Expression value, DataType type, Expression old) {
    DataType from = value.dataType();
    if (isFit(from, type)) {
      return value;
    }
    if (from instanceof StructType given && type instanceof StructType wanted) {
      return struct(value, given, wanted, old);
    }
    if (from instanceof ArrayType given && type instanceof ArrayType wanted) {
      return array(value, given, wanted);
    }
    if (from instanceof MapType given && type instanceof MapType wanted) {
      return map(value, given, wanted);
    }
    return value;
  }

  /** Returns whether a type has only fields that another type has, and lacks some of them. */
  public static boolean isPart(DataType type, DataType whole) {
    return !isFit(type, whole) && hasOnlyFieldsOf(type, whole) && !hasOnlyFieldsOf(whole, type);
  }

  private static boolean hasOnlyFieldsOf(DataType type, DataType other) {
    if (type instanceof StructType given && other instanceof StructType known) {
      for (StructField field : given.fields()) {
        int at = indexOf(known, field.name());
        if (at < 0 || !hasOnlyFieldsOf(field.dataType(), known.fields()[at].dataType())) {
          return false;
        }
      }
      return true;
    }
    if (type instanceof ArrayType given && other instanceof ArrayType known) {
      return hasOnlyFieldsOf(given.elementType(), known.elementType());
    }
    if (type instanceof MapType given && other instanceof MapType known) {
      return hasOnlyFieldsOf(given.keyType(), known.keyType())
          && hasOnlyFieldsOf(given.valueType(), known.valueType());
    }
    return true;
  }

  /** Returns the index of the field with a name, ignoring case; -1 if there is none. */
  public static int indexOf(StructType type, String name) {
    StructField[] fields = type.fields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].name().equalsIgnoreCase(name)) {
        return i;
      }
    }
    return -1;
  }

  private static Expression struct(
      Expression value, StructType from, StructType to, Expression old) {
    StructField[] given = from.fields();
    for (StructField each : given) {
      if (indexOf(to, each.name()) < 0) {
        throw Bridge.refusals().field(each.name(), to.catalogString());
      }
    }
    boolean keeps = old != null && old.dataType() instanceof StructType;
    List<Expression> parts = new ArrayList<>();
    for (int i = 0; i < to.fields().length; i++) {
      StructField field = to.fields()[i];
      int at = indexOf(from, field.name());
      Expression kept = keeps ? field(old, field.name()) : null;
      Expression part =
          at >= 0
              ? fitted(field(given(value, keeps), field.name()), field.dataType(), kept)
              : kept != null
                  ? fitted(kept, field.dataType(), null)
                  : Plans.nothing(field.dataType());
      parts.add(Literal.create(field.name(), DataTypes.StringType));
      parts.add(part);
    }
    Expression made = new CreateNamedStruct(Plans.seq(parts));
    Expression isNothing = new IsNull(value);
    if (keeps && lacksFields(from, to)) {
      isNothing = new And(isNothing, new IsNull(old));
    }
    return new If(isNothing, Plans.nothing(made.dataType()), made);
  }

  /** Returns a struct marked as not NULL, unless fields of an old value are kept. */
  private static Expression given(Expression value, boolean keeps) {
    return keeps ? value : new KnownNotNull(value);
  }

  /**
   * Returns whether a type has the fields of another one in the same order, including in arrays and
   * maps.
   */
  private static boolean isFit(DataType from, DataType to) {
    if (from instanceof StructType struct && to instanceof StructType wanted) {
      StructField[] given = struct.fields();
      StructField[] fields = wanted.fields();
      boolean isFit = given.length == fields.length;
      for (int i = 0; isFit && i < fields.length; i++) {
        isFit =
            given[i].name().equalsIgnoreCase(fields[i].name())
                && isFit(given[i].dataType(), fields[i].dataType());
      }
      return isFit;
    }
    if (from instanceof ArrayType given && to instanceof ArrayType wanted) {
      return isFit(given.elementType(), wanted.elementType());
    }
    if (from instanceof MapType given && to instanceof MapType wanted) {
      return isFit(given.keyType(), wanted.keyType())
          && isFit(given.valueType(), wanted.valueType());
    }
    return true;
  }

  /** Returns whether a struct, or a struct inside it, lacks fields that another type has. */
  private static boolean lacksFields(DataType from, DataType to) {
    if (!(from instanceof StructType given && to instanceof StructType wanted)) {
      return false;
    }
    StructField[] fields = wanted.fields();
    for (StructField field : fields) {
      int at = indexOf(given, field.name());
      if (at < 0 || lacksFields(given.fields()[at].dataType(), field.dataType())) {
        return true;
      }
    }
    return false;
  }

  /** Returns the field with a name, ignoring case; null if the value has none. */
  private static Expression field(Expression value, String name) {
    StructType type = (StructType) value.dataType();
    int at = indexOf(type, name);
    return at < 0 ? null : new GetStructField(value, at, Option.apply(type.fields()[at].name()));
  }

  private static Expression array(Expression value, ArrayType from, ArrayType to) {
    if (!hasFields(to.elementType())) {
      return value;
    }
    NamedLambdaVariable element = variable("element", from.elementType(), from.containsNull());
    Expression made = fitted(element, to.elementType(), null);
    return new ArrayTransform(value, function(made, element));
  }

  private static Expression map(Expression value, MapType from, MapType to) {
    Expression made = value;
    if (hasFields(to.keyType())) {
      NamedLambdaVariable key = variable("key", from.keyType(), false);
      NamedLambdaVariable unused = variable("value", from.valueType(), from.valueContainsNull());
      made = new TransformKeys(made, function(fitted(key, to.keyType(), null), key, unused));
    }
    if (hasFields(to.valueType())) {
      NamedLambdaVariable unused = variable("key", ((MapType) made.dataType()).keyType(), false);
      NamedLambdaVariable item = variable("value", from.valueType(), from.valueContainsNull());
      made = new TransformValues(made, function(fitted(item, to.valueType(), null), unused, item));
    }
    return made;
  }

  private static NamedLambdaVariable variable(String name, DataType type, boolean nullable) {
    return new NamedLambdaVariable(
        name, type, nullable, NamedExpression$.MODULE$.newExprId(), new AtomicReference<>());
  }

  private static Expression function(Expression made, NamedExpression... variables) {
    Seq<NamedExpression> arguments = Plans.seq(java.util.Arrays.asList(variables));
    return new LambdaFunction(made, arguments, false);
  }
}
