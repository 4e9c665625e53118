package io.deltalog.spark;

import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;

/**
 * Reads the output of a process. Each line is logged, and the last line is kept for error messages.
 * Long lines are cut off.
 */
final class ProcessOutput {
  private static final int LONGEST = 4000;
  private static final long END_MILLIS = TimeUnit.SECONDS.toMillis(5);
  private final InputStream output;
  private final Logger log;
  private final Thread reader;
  private volatile String lastLine = "";

  private ProcessOutput(InputStream output, Logger log, String name) {
    this.output = output;
    this.log = log;
    this.reader = new Thread(this::read, name);
    reader.setDaemon(true);
  }

  /** Reads an output until it ends, in a new thread with the given name. */
  static ProcessOutput reading(InputStream output, Logger log, String name) {
    ProcessOutput made = new ProcessOutput(output, log, name);
    made.reader.start();
    return made;
  }

  /** Returns the last line of a process that has ended. */
  String lastLine() throws InterruptedException {
    reader.join(END_MILLIS); // A child of the process may still have the output open.
    return lastLine;
  }

  private void read() {
    try (Reader characters = new InputStreamReader(output, StandardCharsets.UTF_8)) {
      StringBuilder line = new StringBuilder();
      for (int next = characters.read(); next != -1; next = characters.read()) {
        if (next == '\n') {
          add(line);
        } else if (line.length() < LONGEST) {
          line.append((char) next);
        }
      }
      add(line);
    } catch (IOException e) {
      log.debug("the output has ended", e); // The process was destroyed.
    }
  }

  private void add(StringBuilder line) {
    if (!line.toString().isBlank()) {
      lastLine = line.toString();
      log.warn(lastLine);
    }
    line.setLength(0);
  }
}
