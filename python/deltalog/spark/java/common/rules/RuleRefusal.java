package io.deltalog.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** States why an expression of a table is not allowed. */
public class RuleRefusal extends RuntimeException {
  private final List<String> parts;

  /** Creates the refusal. The kind and the name state what the expression belongs to. */
  public RuleRefusal(String table, String kind, String name, String sql, String reason) {
    super(reason);
    parts = Arrays.asList(table, kind, name, sql, reason);
  }

  /** Returns the error that Python raises. */
  public RuntimeException error() {
    return Bridge.refusals().expression(Json.text(parts));
  }

  /** Returns an SQL expression that is not constant and whose text contains the error. */
  public String sql() {
    byte[] text = Json.text(parts).getBytes(StandardCharsets.UTF_8);
    return "raise_error('deltalog refuses " + Base64.getEncoder().encodeToString(text) + "')";
  }
}
