package io.deltalog.spark;

import java.util.Collections;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import scala.collection.immutable.Seq;

/** Executes a statement that changes rows. */
public class StatementExec extends OwnCommandExec {
  private final StatementCommand command;

  public StatementExec(StatementCommand command) {
    super(command);
    this.command = command;
  }

  @Override
  public Seq<InternalRow> run() {
    StatementRun run = StatementRun.of(session(), command.statement());
    String[] found = Bridge.statements().change(session(), run, run.description()).split(" ");
    StatementTarget target = StatementTarget.of(command.statement());
    if (target.name() != null && target.evolved() != null) {
      EntryColumns.update(session(), target.name());
    }
    Object[] row = new Object[found.length];
    for (int i = 0; i < row.length; i++) {
      row[i] = Long.valueOf(found[i]);
    }
    return Plans.seq(Collections.singletonList(new GenericInternalRow(row)));
  }

  @Override
  public Seq<Attribute> output() {
    return command.output();
  }

  @Override
  public String nodeName() {
    return command.nodeName();
  }
}
