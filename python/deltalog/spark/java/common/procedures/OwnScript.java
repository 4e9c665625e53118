package io.deltalog.spark;

import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;

/**
 * Replaces statements that Spark's grammar lacks with procedure calls, in a script (BEGIN … END).
 * Each statement of a script ends with a semicolon.
 */
public class OwnScript {
  /** The words after which a statement may begin. THEN and ELSE also occur in expressions. */
  private static final Set<String> BEFORE =
      Set.of(";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT");

  private OwnScript() {}

  /**
   * Returns a script with procedure calls in place of such statements. Returns any other text
   * unchanged.
   */
  public static String of(String text, ParserInterface spark) throws ParseException {
    SqlTokens tokens = new SqlTokens(text);
    if (!tokens.skip("BEGIN")) {
      return text;
    }
    String whole = tokens.whole();
    StringBuilder made = new StringBuilder();
    int copied = 0;
    int start = tokens.position();
    boolean isStart = true;
    for (String token = tokens.skipToken(); token != null; token = tokens.skipToken()) {
      if (isStart) {
        int end = start + length(whole.substring(start));
        OwnStatement statement = statement(whole.substring(start, end), spark);
        if (statement != null) {
          FeatureGroup.OWN_SQL.require();
          made.append(whole, copied, start).append(statement.wholeCall());
          copied = end;
        }
      }
      isStart = BEFORE.contains(token.toUpperCase(Locale.ROOT));
      start = tokens.position();
    }
    return copied == 0 ? text : made.append(whole, copied, whole.length()).toString();
  }

  /** Returns the length of the statement at the beginning of a string. */
  private static int length(String text) {
    SqlTokens tokens = new SqlTokens(text);
    int end = tokens.position();
    for (String token = tokens.skipToken(); token != null && !token.equals(";"); ) {
      end = tokens.position();
      token = tokens.skipToken();
    }
    return end;
  }

  private static OwnStatement statement(String text, ParserInterface spark) throws ParseException {
    OwnStatement about = OwnStatement.about(text, spark);
    OwnStatement statement = about == null ? OwnStatement.change(text, spark) : about;
    return statement == null || (about == null && isKnown(text, spark)) ? null : statement;
  }

  /** Returns whether this release of Spark itself can parse the statement. */
  private static boolean isKnown(String text, ParserInterface spark) {
    try {
      spark.parsePlan(text);
      return true;
    } catch (ParseException e) {
      return false;
    }
  }
}
