package io.deltalog.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NamedParameter;
import org.apache.spark.sql.catalyst.analysis.PosParameter;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Turns a condition that contains parameter markers into an SQL expression. The value of the
 * expression is the condition with values instead of the markers. Spark binds the markers in the
 * expression, as in any statement.
 *
 * <pre>
 * day = :day    →    concat('day = ', 'CAST(\'' || … :day … || '\' AS ' || typeof(:day) || ')')
 * </pre>
 *
 * <p>The expression needs each value twice, but a marker without a name must not be repeated. So
 * the procedure call that Spark's parser parses contains each marker once, in a list (`list`). The
 * expression is then built from the parsed markers (`expression`). A script, however, remains a
 * string. There the expression is inserted as text, so only named markers are possible (`text`).
 */
final class BoundText {
  private final List<String> parts = new ArrayList<>();
  private final List<String> markers = new ArrayList<>();

  private BoundText() {}

  /**
   * Returns a condition with its markers, given the expression that Spark has parsed from it; null
   * if it has no markers.
   */
  static BoundText of(String text, Expression parsed) {
    List<Expression> found = new ArrayList<>();
    collect(parsed, found);
    if (found.isEmpty()) {
      return null;
    }
    found.sort((one, other) -> Integer.compare(start(one), start(other)));
    BoundText bound = new BoundText();
    int end = 0;
    for (Expression marker : found) {
      bound.parts.add(text.substring(end, start(marker)));
      end = (int) marker.origin().stopIndex().get() + 1;
      bound.markers.add(text.substring(start(marker), end));
    }
    bound.parts.add(text.substring(end));
    return bound;
  }

  private static void collect(Expression part, List<Expression> markers) {
    if (part instanceof PosParameter || part instanceof NamedParameter) {
      markers.add(part);
    }
    for (Expression expression : Plans.each(part.children())) {
      collect(expression, markers);
    }
  }

  private static int start(Expression marker) {
    return (int) marker.origin().startIndex().get();
  }

  /** Returns the markers as an SQL list. */
  String list() {
    return "array(" + String.join(", ", markers) + ")";
  }

  /** Returns the expression, given the list of markers that Spark has parsed. */
  Expression expression(Expression list, ParserInterface spark) throws ParseException {
    List<Expression> values = Plans.list(list.children());
    List<String> names = new ArrayList<>();
    for (int i = 0; i < values.size(); i++) {
      names.add(":v" + i);
    }
    return spark.parseExpression(text(names)).transform(new Values(values));
  }

  /** Returns the expression as SQL, in which each marker is repeated. */
  String text() {
    if (markers.contains("?")) {
      throw new UnsupportedOperationException(
          "deltalog: a condition of this statement cannot have the parameter ? in a script: give it"
              + " a name, as in :name");
    }
    return text(markers);
  }

  private String text(List<String> values) {
    List<String> all = new ArrayList<>();
    for (int i = 0; i < values.size(); i++) {
      all.add(constant(parts.get(i)));
      all.add(value(values.get(i)));
    }
    all.add(constant(parts.get(values.size())));
    return "concat(" + String.join(", ", all) + ")";
  }

  /**
   * Returns an SQL expression for a string constant. It does not rely on escapes in quoted strings,
   * because their meaning depends on settings.
   */
  private static String constant(String text) {
    String bytes = HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    return "CAST(X'" + bytes + "' AS STRING)";
  }

  /**
   * Returns an SQL expression whose result is the SQL text of a constant with the value and the
   * type of a parameter.
   */
  private static String value(String marker) {
    String escaped =
        "replace(replace(CAST("
            + marker
            + " AS STRING), chr(92), concat(chr(92), chr(92))), chr(39), concat(chr(92), chr(39)))";
    return "coalesce(concat('CAST(', chr(39), "
        + escaped
        + ", chr(39), ' AS ', typeof("
        + marker
        + "), ')'), 'NULL')";
  }

  /** Replaces the markers :v0, :v1, … with values. */
  private static final class Values extends NodeChange<Expression> {
    private final List<Expression> values;

    Values(List<Expression> values) {
      this.values = values;
    }

    @Override
    public boolean isDefinedAt(Expression node) {
      return node instanceof NamedParameter;
    }

    @Override
    protected Expression changed(Expression node) {
      return values.get(Integer.parseInt(((NamedParameter) node).name().substring(1)));
    }
  }
}
