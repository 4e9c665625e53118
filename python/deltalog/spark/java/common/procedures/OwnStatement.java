package io.deltalog.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A statement that Spark's grammar lacks, which is executed as a call of a procedure. It is only
 * recognized if the whole text is such a statement.
 */
public class OwnStatement {
  private final String explain;
  private final String procedure;
  private final boolean hasResult;
  private final Map<String, Object> arguments = new LinkedHashMap<>();
  private final Map<String, Object> expressions = new LinkedHashMap<>();
  private final Map<String, BoundText> bound = new LinkedHashMap<>();

  private OwnStatement(String explain, String procedure, boolean hasResult) {
    this.explain = explain;
    this.procedure = procedure;
    this.hasResult = hasResult;
  }

  /**
   * Returns the SQL of a call, for Spark's parser, without the arguments whose values are already
   * known. Instead of a condition with parameters, it contains a list of the parameters (`bound`).
   */
  public String call() {
    List<String> given = expressionTexts();
    bound.forEach((name, text) -> given.add(name + " => " + text.list()));
    return call(ProcedurePlans.NAMESPACE, given);
  }

  /** Returns the SQL of a call with all arguments. It works regardless of the current catalog. */
  public String wholeCall() {
    List<String> given = expressionTexts();
    for (Map.Entry<String, Object> argument : arguments.entrySet()) {
      given.add(argument.getKey() + " => " + Literal$.MODULE$.apply(argument.getValue()).sql());
    }
    bound.forEach((name, text) -> given.add(name + " => " + text.text()));
    return call(TableNames.SESSION_CATALOG + "." + ProcedurePlans.NAMESPACE, given);
  }

  /**
   * Returns the arguments that are expressions, in the order in which they occur in the statement.
   */
  private List<String> expressionTexts() {
    List<String> given = new ArrayList<>();
    for (Map.Entry<String, Object> argument : expressions.entrySet()) {
      given.add(argument.getKey() + " => " + argument.getValue());
    }
    return given;
  }

  private String call(String namespace, List<String> given) {
    return explain + "CALL " + namespace + "." + procedure + "(" + String.join(", ", given) + ")";
  }

  /**
   * Stores the name of a table, or the expression in IDENTIFIER(…). Returns false if it is null.
   */
  private boolean take(String parameter, Name name) {
    if (name == null) {
      return false;
    }
    (name.isExpression() ? expressions : arguments).put(parameter, name.text());
    return true;
  }

  /** A name, a path in quotes, or an SQL expression with a name as its value. */
  private record Name(String text, boolean isExpression) {
    static Name of(String text) {
      return text == null ? null : new Name(text, false);
    }
  }

  /** Returns the name of a table, or the expression in IDENTIFIER(…); null if there is neither. */
  private static Name name(SqlTokens tokens) {
    String expression = tokens.skipIdentifier();
    return expression == null ? Name.of(tokens.skipName()) : new Name(expression, true);
  }

  /**
   * Returns the arguments whose values are known (strings, arrays of strings, or booleans), by the
   * names of the parameters.
   */
  public Map<String, Object> arguments() {
    return arguments;
  }

  /**
   * Returns the conditions that contain parameter markers, by the names of the procedure's
   * parameters.
   */
  Map<String, BoundText> bound() {
    return bound;
  }

  /** Returns whether users see the result of the procedure. */
  public boolean hasResult() {
    return hasResult;
  }

  /**
   * Parses DESCRIBE HISTORY or DESCRIBE DETAIL; returns null for other statements. Spark would
   * parse them as the description of a column in a table called HISTORY or DETAIL.
   */
  public static OwnStatement about(String text, ParserInterface spark) throws ParseException {
    // For any other statement, no more than these words are read.
    SqlTokens tokens = new SqlTokens(text);
    String explain = explained(tokens);
    if (!tokens.skip("DESCRIBE") && !tokens.skip("DESC")) {
      return null;
    }
    boolean isHistory = tokens.skip("HISTORY");
    if (!isHistory && !tokens.skip("DETAIL")) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, isHistory ? "history" : "detail", true);
    if (!statement.take("table", table(tokens, spark))) {
      return null;
    }
    if (isHistory && tokens.skip("LIMIT")) {
      String limit = tokens.skipNumber();
      if (limit == null) {
        return null;
      }
      statement.expressions.put("limit", limit);
    }
    return tokens.isEnd() ? statement : null;
  }

  /**
   * Parses a change of a table that Spark's parser could not parse; returns null for other
   * statements.
   */
  public static OwnStatement change(String text, ParserInterface spark) throws ParseException {
    SqlTokens tokens = new SqlTokens(text);
    String explain = explained(tokens);
    if (tokens.skip("VACUUM")) {
      return vacuum(explain, tokens, spark);
    }
    if (tokens.skip("OPTIMIZE")) {
      return optimize(explain, tokens, spark);
    }
    if (tokens.skip("RESTORE")) {
      return restore(explain, tokens);
    }
    if (tokens.skip("REORG")) {
      return reorg(explain, tokens, spark);
    }
    if (tokens.skip("GENERATE")) {
      return generate(explain, tokens, spark);
    }
    if (tokens.skip("FSCK")) {
      return repair(explain, tokens, spark);
    }
    if (tokens.skip("ANALYZE")) {
      return statistics(explain, tokens, spark);
    }
    if (tokens.skip("CONVERT")) {
      return convert(explain, tokens);
    }
    if (tokens.skip("CREATE")) {
      return clone(explain, tokens, spark);
    }
    Name table = tokens.skip("ALTER") && tokens.skip("TABLE") ? name(tokens) : null;
    if (table == null) {
      return null;
    }
    OwnStatement statement = null;
    if (tokens.skip("ADD")) {
      statement = tokens.skip("CONSTRAINT") ? added(explain, tokens, spark) : null;
    } else if (tokens.skip("DROP")) {
      statement =
          tokens.skip("CONSTRAINT")
              ? dropped(explain, tokens, spark)
              : tokens.skip("FEATURE") ? withoutFeature(explain, tokens, spark) : null;
    }
    if (statement == null || !tokens.isEnd()) {
      return null;
    }
    statement.take("table", table);
    return statement;
  }

  /** Parses VACUUM, whose clauses may be in any order, each at most once. */
  private static OwnStatement vacuum(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    Name table = table(tokens, spark);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "vacuum", true);
    Map<String, Object> arguments = statement.arguments;
    statement.take("table", table);
    boolean isNew = true;
    while (isNew && !tokens.isEnd()) {
      if (tokens.skip("LITE")) {
        isNew = arguments.put("mode", "LITE") == null;
      } else if (tokens.skip("FULL")) {
        isNew = arguments.put("mode", "FULL") == null;
      } else if (tokens.skip("DRY")) {
        isNew = tokens.skip("RUN") && arguments.put("dry_run", true) == null;
      } else if (tokens.skip("RETAIN")) {
        // A negative number is parsed, so that it is refused with the right error.
        String sign = tokens.skip("-") ? "-" : "";
        String hours = tokens.skipDecimal();
        isNew =
            hours != null
                && tokens.skip("HOURS")
                && statement.expressions.get("retain_hours") == null;
        statement.expressions.put("retain_hours", sign + hours);
      } else if (tokens.skip("USING")) {
        if (!tokens.skip("INVENTORY")) {
          return null;
        }
        String query = tokens.skipParentheses();
        String inventory = query == null ? tokens.skipName() : "(" + query + ")";
        isNew = inventory != null && arguments.put("inventory", inventory) == null;
      } else {
        return null;
      }
    }
    return isNew ? statement : null;
  }

  /** Parses OPTIMIZE with or without a predicate and columns, or with only FULL. */
  private static OwnStatement optimize(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    Name table = table(tokens, spark);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "optimize", true);
    statement.take("table", table);
    if (tokens.skip("FULL")) {
      statement.arguments.put("full", true);
      return tokens.isEnd() ? statement : null;
    }
    if (!statement.skipWhere(tokens, "ZORDER", spark)) {
      return null;
    }
    if (tokens.skip("ZORDER")) {
      String[] columns = tokens.skip("BY") ? columns(tokens) : null;
      if (columns == null) {
        return null;
      }
      statement.arguments.put("z_order", columns);
    }
    return tokens.isEnd() ? statement : null;
  }

  /** Parses REORG with any action in APPLY. */
  private static OwnStatement reorg(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    tokens.skip("TABLE");
    Name table = table(tokens, spark);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "reorg", true);
    statement.take("table", table);
    if (!statement.skipWhere(tokens, "APPLY", spark)) {
      return null;
    }
    String applied = tokens.skip("APPLY") ? tokens.skipParentheses() : null;
    if (applied == null) {
      return null;
    }
    statement.arguments.put("apply", applied);
    return tokens.isEnd() ? statement : null;
  }

  /**
   * Parses ANALYZE TABLE … COMPUTE DELTA STATISTICS. Spark's own statement lacks the word DELTA.
   */
  private static OwnStatement statistics(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    Name table = tokens.skip("TABLE") ? table(tokens, spark) : null;
    if (table == null
        || !tokens.skip("COMPUTE")
        || !tokens.skip("DELTA")
        || !tokens.skip("STATISTICS")) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "recompute_statistics", true);
    statement.take("table", table);
    return tokens.isEnd() ? statement : null;
  }

  /** Returns the table of a statement, a name or a path in quotes; null if there is none. */
  private static Name table(SqlTokens tokens, ParserInterface spark) throws ParseException {
    String quoted = tokens.skipString();
    return quoted == null ? name(tokens) : Name.of(value(quoted, spark));
  }

  /**
   * Stores the predicate of a WHERE clause, if there is one. The predicate ends before the word
   * `end`. Returns false if the predicate is missing after WHERE.
   */
  private boolean skipWhere(SqlTokens tokens, String end, ParserInterface spark)
      throws ParseException {
    if (!tokens.skip("WHERE")) {
      return true;
    }
    String predicate = tokens.skipRest(end);
    if (predicate == null) {
      return false;
    }
    BoundText text = BoundText.of(predicate, spark.parseExpression(predicate));
    if (text == null) {
      arguments.put("predicate", predicate);
    } else {
      bound.put("predicate", text);
    }
    return true;
  }

  /**
   * Returns the names of one or more columns, with or without parentheses around them; null if
   * there are none.
   */
  private static String[] columns(SqlTokens tokens) {
    boolean isEnclosed = tokens.skip("(");
    List<String> names = new ArrayList<>();
    do {
      String name = tokens.skipName();
      if (name == null) {
        return null;
      }
      names.add(name);
    } while (tokens.skip(","));
    return isEnclosed && !tokens.skip(")") ? null : names.toArray(new String[0]);
  }

  /** Parses RESTORE to a version or a time. */
  private static OwnStatement restore(String explain, SqlTokens tokens) throws ParseException {
    tokens.skip("TABLE");
    Name table = name(tokens);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "restore", true);
    statement.take("table", table);
    tokens.skip("TO");
    tokens.skip("FOR");
    if (tokens.skip("VERSION") || tokens.skip("SYSTEM_VERSION")) {
      String version = tokens.skip("AS") && tokens.skip("OF") ? tokens.skipNumber() : null;
      if (version == null) {
        return null;
      }
      statement.expressions.put("version", version);
    } else if (tokens.skip("TIMESTAMP") || tokens.skip("SYSTEM_TIME")) {
      String time = tokens.skip("AS") && tokens.skip("OF") ? tokens.skipRest(null) : null;
      if (time == null) {
        return null;
      }
      statement.expressions.put("timestamp", "CAST(" + time + " AS TIMESTAMP)");
    } else {
      return null;
    }
    return tokens.isEnd() ? statement : null;
  }

  /** Parses GENERATE with any mode. */
  private static OwnStatement generate(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    String mode = tokens.skipWord();
    if (mode == null || !tokens.skip("FOR") || !tokens.skip("TABLE")) {
      return null;
    }
    Name table = table(tokens, spark);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "generate", false);
    statement.take("table", table);
    statement.arguments.put("mode", unquoted(mode, spark));
    return tokens.isEnd() ? statement : null;
  }

  /** Parses FSCK REPAIR TABLE, which may also remove damaged files. */
  private static OwnStatement repair(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    if (!tokens.skip("REPAIR") || !tokens.skip("TABLE")) {
      return null;
    }
    Name table = table(tokens, spark);
    if (table == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "repair", true);
    statement.take("table", table);
    if (tokens.skip("VERIFY")) {
      if (!tokens.skip("ALL") || !tokens.skip("FILES")) {
        return null;
      }
      statement.arguments.put("remove_damaged", true);
    }
    if (tokens.skip("DRY")) {
      if (!tokens.skip("RUN")) {
        return null;
      }
      statement.arguments.put("dry_run", true);
    }
    return tokens.isEnd() ? statement : null;
  }

  /** Parses CONVERT TO DELTA of a directory or a table. */
  private static OwnStatement convert(String explain, SqlTokens tokens) {
    String directory = tokens.skip("TO") && tokens.skip("DELTA") ? tokens.skipName() : null;
    if (directory == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "convert", false);
    statement.arguments.put("table", directory);
    if (tokens.skip("NO")) {
      if (!tokens.skip("STATISTICS")) {
        return null;
      }
      statement.arguments.put("statistics", false);
    }
    if (tokens.skip("PARTITIONED")) {
      String columns = tokens.skip("BY") ? tokens.skipParentheses() : null;
      if (columns == null) {
        return null;
      }
      statement.arguments.put("partition_by", columns);
    }
    return tokens.isEnd() ? statement : null;
  }

  /** Parses CREATE TABLE … SHALLOW CLONE or DEEP CLONE. */
  private static OwnStatement clone(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    String mode = tokens.skip("OR") ? "create or replace" : "create";
    if ((mode.equals("create or replace") && !tokens.skip("REPLACE")) || !tokens.skip("TABLE")) {
      return null;
    }
    if (tokens.skip("IF")) {
      if (!mode.equals("create") || !tokens.skip("NOT") || !tokens.skip("EXISTS")) {
        return null;
      }
      mode = "create if not exists";
    }
    Name target = name(tokens);
    boolean isShallow = target != null && tokens.skip("SHALLOW");
    if (target == null || (!isShallow && !tokens.skip("DEEP")) || !tokens.skip("CLONE")) {
      return null;
    }
    Name source = name(tokens);
    if (source == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "clone", true);
    // The arguments stay in the order of the statement, in which Spark binds parameters without
    // names.
    statement.take("target", target);
    statement.take("table", source);
    statement.arguments.put("shallow", Boolean.valueOf(isShallow));
    statement.arguments.put("mode", mode);
    tokens.skip("FOR");
    if (tokens.skip("VERSION") || tokens.skip("SYSTEM_VERSION")) {
      String version = tokens.skip("AS") && tokens.skip("OF") ? tokens.skipNumber() : null;
      if (version == null) {
        return null;
      }
      statement.expressions.put("version", version);
    } else if (tokens.skip("TIMESTAMP") || tokens.skip("SYSTEM_TIME")) {
      String time = tokens.skip("AS") && tokens.skip("OF") ? tokens.skipString() : null;
      if (time == null) {
        return null;
      }
      statement.expressions.put("timestamp", "CAST(" + time + " AS TIMESTAMP)");
    }
    if (tokens.skip("TBLPROPERTIES")) {
      Map<String, String> properties = properties(tokens, spark);
      if (properties == null) {
        return null;
      }
      statement.arguments.put("properties", Json.text(properties));
    }
    if (tokens.skip("LOCATION")) {
      String location = tokens.skipString();
      if (location == null) {
        return null;
      }
      statement.arguments.put("location", value(location, spark));
    }
    return tokens.isEnd() ? statement : null;
  }

  /**
   * Parses properties in parentheses. Their names may be quoted, and their values are strings.
   * Returns null if the next tokens are something else.
   */
  private static Map<String, String> properties(SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    Map<String, String> properties = new LinkedHashMap<>();
    boolean isOpen = tokens.skip("(");
    while (isOpen) {
      String quoted = tokens.skipString();
      String name = quoted == null ? tokens.skipName() : value(quoted, spark);
      tokens.skip("=");
      String text = tokens.skipString();
      if (name == null || text == null) {
        return null;
      }
      properties.put(name, value(text, spark));
      isOpen = tokens.skip(",");
    }
    return tokens.skip(")") ? properties : null;
  }

  private static OwnStatement added(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    String name = tokens.skipWord();
    String expression = name != null && tokens.skip("CHECK") ? tokens.skipParentheses() : null;
    if (expression == null) {
      return null;
    }
    spark.parseExpression(expression); // This raises an error if the condition is not valid SQL.
    OwnStatement statement = new OwnStatement(explain, "add_constraint", false);
    statement.arguments.put("name", unquoted(name, spark));
    statement.arguments.put("expression", expression);
    return statement;
  }

  private static OwnStatement dropped(String explain, SqlTokens tokens, ParserInterface spark)
      throws ParseException {
    boolean ifExists = tokens.skip("IF");
    if (ifExists && !tokens.skip("EXISTS")) {
      return null;
    }
    String name = tokens.skipWord();
    if (name == null) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "drop_constraint", false);
    statement.arguments.put("name", unquoted(name, spark));
    statement.arguments.put("if_exists", Boolean.valueOf(ifExists));
    return statement;
  }

  private static OwnStatement withoutFeature(
      String explain, SqlTokens tokens, ParserInterface spark) throws ParseException {
    String quoted = tokens.skipString();
    String word = quoted == null ? tokens.skipWord() : null;
    String feature =
        quoted != null ? value(quoted, spark) : word != null ? unquoted(word, spark) : null;
    boolean truncates = tokens.skip("TRUNCATE");
    if (feature == null || (truncates && !tokens.skip("HISTORY"))) {
      return null;
    }
    OwnStatement statement = new OwnStatement(explain, "drop_feature", false);
    statement.arguments.put("feature", feature);
    statement.arguments.put("truncate_history", Boolean.valueOf(truncates));
    return statement;
  }

  /** Returns EXPLAIN and its mode, or an empty string. */
  private static String explained(SqlTokens tokens) {
    if (!tokens.skip("EXPLAIN")) {
      return "";
    }
    String[] modes = {"EXTENDED", "FORMATTED", "COST", "CODEGEN"};
    for (String mode : modes) {
      if (tokens.skip(mode)) {
        return "EXPLAIN " + mode + " ";
      }
    }
    return "EXPLAIN ";
  }

  /**
   * Returns the content of a quoted string; null if Spark interprets it as the name of a column.
   */
  private static String value(String quoted, ParserInterface spark) throws ParseException {
    Expression parsed = spark.parseExpression(quoted);
    Object value = parsed instanceof Literal literal ? literal.value() : null;
    return value instanceof UTF8String ? value.toString() : null;
  }

  private static String unquoted(String word, ParserInterface spark) throws ParseException {
    return spark.parseMultipartIdentifier(word).head();
  }
}
