package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import scala.collection.immutable.Seq;

/** Executes a statement that changes rows. */
public class StatementExec extends OwnCommandExec {
  private final StatementCommand command;

  public StatementExec(StatementCommand command) {
    this.command = command;
  }

  public Seq run() {
    String[] counts = Bridge.statements().change(session(), command.statement()).split(" ");
    // Spark computes cached rows of the table again.
    String name = StatementTarget.of(command.statement()).name();
    if (name != null && !session().sharedState().cacheManager().isEmpty()) {
      session().catalog().refreshTable(name);
    }
    Object[] row = new Object[counts.length];
    for (int i = 0; i < row.length; i++) {
      row[i] = Long.valueOf(counts[i]);
    }
    return Plans.seq(Collections.singletonList(new GenericInternalRow(row)));
  }

  public Seq output() {
    return command.output();
  }

  public String nodeName() {
    return command.nodeName();
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int index) {
    return command;
  }
}
