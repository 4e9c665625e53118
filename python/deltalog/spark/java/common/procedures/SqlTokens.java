package io.deltalog.spark;

import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CodePointCharStream;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.misc.Interval;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.internal.VariableSubstitution;

/**
 * Reads the tokens of a statement one by one. They come from Spark's own lexer, without comments,
 * and with variables replaced. If a method does not find the tokens that it reads, it returns null
 * or false. Tokens that it has matched before the first mismatch are skipped nevertheless.
 */
public class SqlTokens {
  private final CodePointCharStream text;
  private final SqlBaseLexer lexer;
  private Token next;

  public SqlTokens(String statement) {
    this.text = CharStreams.fromString(new VariableSubstitution().substitute(statement));
    this.lexer = new SqlBaseLexer(new UpperCaseCharStream(text));
    lexer.removeErrorListeners();
    advance();
  }

  private void advance() {
    do {
      next = lexer.nextToken();
    } while (next.getChannel() != Token.DEFAULT_CHANNEL);
  }

  /** Skips the next token if it is this word, and returns whether it was. */
  public boolean skip(String word) {
    boolean found = word.equalsIgnoreCase(text(next));
    if (found) {
      advance();
    }
    return found;
  }

  /** Returns a quoted string, including the quotes. */
  public String skipString() {
    char first = text(next).charAt(0);
    return first == '\'' || first == '"' ? skipAny() : null;
  }

  /** Returns a word, including its backticks. */
  public String skipWord() {
    return isWord() ? skipAny() : null;
  }

  /** Returns a name, which may have several parts. */
  public String skipName() {
    if (!isWord()) {
      return null;
    }
    int start = next.getStartIndex();
    int stop = next.getStopIndex();
    advance();
    while (text(next).equals(".")) {
      advance();
      if (!isWord()) {
        return null;
      }
      stop = next.getStopIndex();
      advance();
    }
    return text.getText(Interval.of(start, stop));
  }

  /** Returns the SQL in the parentheses of IDENTIFIER(…), an expression whose value is a name. */
  public String skipIdentifier() {
    if (!"IDENTIFIER".equalsIgnoreCase(text(next)) || !isFollowedBy('(')) {
      return null;
    }
    advance();
    return skipParentheses();
  }

  /** Skips any one token, unless the statement has ended, and returns the token. */
  public String skipToken() {
    return next.getType() == Token.EOF ? null : skipAny();
  }

  /** Returns the position of the next token in the whole statement, in characters. */
  public int position() {
    return text.toString()
        .offsetByCodePoints(0, next.getType() == Token.EOF ? text.size() : next.getStartIndex());
  }

  /** Returns the whole statement, with variables replaced. */
  public String whole() {
    return text.toString();
  }

  private boolean isFollowedBy(char wanted) {
    int at = next.getStopIndex() + 1;
    while (at < text.size()
        && Character.isWhitespace(text.getText(Interval.of(at, at)).charAt(0))) {
      at++;
    }
    return at < text.size() && text.getText(Interval.of(at, at)).charAt(0) == wanted;
  }

  /** Returns a whole number, or the marker of a parameter. */
  public String skipNumber() {
    String found = text(next);
    if (found.equals("?") || isDigits(found)) {
      return skipAny();
    }
    if (!found.equals(":")) {
      return null;
    }
    advance();
    return isWord() ? ":" + skipAny() : null;
  }

  /** Returns a number that may have a decimal point, or the marker of a parameter. */
  public String skipDecimal() {
    int point = text(next).indexOf('.');
    boolean isDecimal =
        point >= 0
            && text(next).length() > 1
            && isDigits(text(next).substring(0, point))
            && isDigits(text(next).substring(point + 1));
    return isDecimal ? skipAny() : skipNumber();
  }

  /** Returns the SQL between parentheses. */
  public String skipParentheses() {
    if (!skip("(")) {
      return null;
    }
    int start = next.getStartIndex();
    int stop = start;
    int depth = 1;
    while (next.getType() != Token.EOF) {
      String found = text(next);
      depth += found.equals("(") ? 1 : found.equals(")") ? -1 : 0;
      if (depth == 0) {
        advance();
        return stop > start ? text.getText(Interval.of(start, stop - 1)) : null;
      }
      stop = next.getStopIndex() + 1;
      advance();
    }
    return null;
  }

  /**
   * Returns the SQL up to the end of the statement, or up to `word` if it is not null; returns null
   * if there is nothing in between.
   */
  public String skipRest(String word) {
    int start = next.getStartIndex();
    int stop = -1;
    while (next.getType() != Token.EOF
        && !text(next).equals(";")
        && !text(next).equalsIgnoreCase(word)) {
      stop = next.getStopIndex();
      advance();
    }
    return stop < 0 ? null : text.getText(Interval.of(start, stop));
  }

  /** Returns whether the statement ends here. */
  public boolean isEnd() {
    while (skip(";")) {}

    return next.getType() == Token.EOF;
  }

  private String skipAny() {
    String found = text(next);
    advance();
    return found;
  }

  private boolean isWord() {
    String found = text(next);
    char first = found.charAt(0);
    return (first == '`' && found.length() > 2) || first == '_' || Character.isLetterOrDigit(first);
  }

  private static boolean isDigits(String text) {
    for (int i = 0; i < text.length(); i++) {
      if (text.charAt(i) < '0' || text.charAt(i) > '9') {
        return false;
      }
    }
    return true;
  }

  /** Returns a token as it was written in the statement. */
  private static String text(Token token) {
    return token.getType() == Token.EOF ? "<EOF>" : token.getText();
  }
}
