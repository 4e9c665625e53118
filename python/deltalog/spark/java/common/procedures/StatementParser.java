package io.deltalog.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SessionState;

/**
 * A parser that wraps the parser of a session. It parses statements that Spark's grammar lacks, and
 * turns them into procedure calls. All other statements are passed to Spark's parser unchanged,
 * which also raises their errors.
 *
 * <p>The parser is a dynamic proxy, because each release of Spark adds methods to the interface.
 */
public class StatementParser implements InvocationHandler {
  private final SparkSession session;
  private final ParserInterface next;

  private StatementParser(SparkSession session, ParserInterface next) {
    this.session = session;
    this.next = next;
  }

  /** Returns deltalog's parser, which wraps the session's parser. */
  static ParserInterface before(SparkSession session, ParserInterface next) {
    ClassLoader loader = StatementParser.class.getClassLoader();
    return (ParserInterface)
        Proxy.newProxyInstance(
            loader, new Class<?>[] {ParserInterface.class}, new StatementParser(session, next));
  }

  /**
   * Sets deltalog's parser in a session that was in use before it had deltalog's extensions.
   * Returns null, or the reason why that is impossible with this release of Spark. Later calls have
   * no effect.
   */
  public static String install(SparkSession session) {
    SessionState state = session.sessionState();
    ParserInterface current = state.sqlParser();
    if (Proxy.isProxyClass(current.getClass())
        && Proxy.getInvocationHandler(current) instanceof StatementParser) {
      return null;
    }
    try {
      HiddenFields.set(state, "sqlParser", before(session, current));
      return null;
    } catch (ReflectiveOperationException | RuntimeException e) {
      return e.toString();
    }
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    String name = method.getName();
    if (name.equals("parsePlan") || name.equals("parsePlanWithParameters")) {
      return plan(method, arguments);
    }
    if (name.equals("parseMultipartIdentifier")) {
      ThreadSession.useForWriter(session);
    }
    if (name.equals("equals")) {
      return Boolean.valueOf(proxy == arguments[0]);
    }
    return spark(method, arguments);
  }

  private Object plan(Method method, Object[] arguments) throws Throwable {
    String text = OwnScript.of((String) arguments[0], next);
    if (text != arguments[0]) {
      Object[] script = arguments.clone();
      script[0] = text;
      return spark(method, script);
    }
    OwnStatement statement = OwnStatement.about(text, next);
    if (statement == null) {
      try {
        LogicalPlan plan = (LogicalPlan) spark(method, arguments);
        return FeatureGroup.OWN_SQL.isLost() ? plan : ProcedurePlans.resolved(plan);
      } catch (ParseException e) {
        statement = OwnStatement.change(text, next);
        if (statement == null) {
          throw e;
        }
      }
    }
    FeatureGroup.OWN_SQL.require();
    // Spark's parser handles parameters, which the arguments may contain.
    Object[] call = arguments.clone();
    call[0] = statement.call();
    return ProcedurePlans.of((LogicalPlan) spark(method, call), statement, next);
  }

  private Object spark(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(next, arguments);
    } catch (InvocationTargetException e) {
      throw throwable(e.getCause(), method);
    }
  }

  /**
   * Returns an exception that the proxy can throw. Errors of scripts are checked exceptions, which
   * the interface does not declare.
   */
  private static Throwable throwable(Throwable failure, Method method) {
    boolean isAllowed =
        failure instanceof RuntimeException
            || failure instanceof Error
            || Arrays.stream(method.getExceptionTypes()).anyMatch(type -> type.isInstance(failure));
    return isAllowed ? failure : new DeltalogException(null, null, null, failure);
  }
}
