package io.deltalog.spark;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;

/** Why an expression of a table is not allowed. */
public class RuleRefusal extends RuntimeException {
  private final List<String> parts;

  /** Takes what the expression belongs to, by kind and name, and the reason. */
  public RuleRefusal(String table, String kind, String name, String sql, String reason) {
    super(reason);
    parts = Arrays.asList(table, kind, name, sql, reason);
  }

  /** Returns the error, which Python raises. */
  public RuntimeException error() {
    return Bridge.refusals().expression(Json.text(parts));
  }

  /** Returns an expression that is not constant, and whose text contains the error. */
  public String sql() {
    byte[] text = Json.text(parts).getBytes(StandardCharsets.UTF_8);
    return "raise_error('deltalog refuses " + Base64.getEncoder().encodeToString(text) + "')";
  }
}
