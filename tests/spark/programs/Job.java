import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkThrowable;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.streaming.DataStreamWriter;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.Trigger;
import org.apache.spark.sql.types.DataTypes;

/** A job that prints the outcome of each of its steps. Its arguments are the names of its parts. */
public class Job {
  private static final String SECRET = "made-up-secret";
  private static final int MOST_SECONDS = 120;

  /**
   * In its first call, the function `paused` counts the first latch down, and waits for the second
   * one.
   */
  private static volatile CountDownLatch reached = new CountDownLatch(0);

  private static volatile CountDownLatch goesOn = new CountDownLatch(0);

  private static volatile boolean waitedInVain;

  private static SparkSession spark;

  private Job() {}

  public static void main(String[] parts) throws Exception {
    spark = SparkSession.builder().getOrCreate();
    spark.udf().register("paused", (UDF1<Integer, Integer>) Job::paused, DataTypes.IntegerType);
    for (String part : parts) {
      switch (part) {
        case "others" -> others();
        case "statements" -> statements();
        case "errors" -> errors();
        case "deaths" -> deaths();
        case "silence" -> silence();
        case "streams" -> streams();
        case "sinks" -> sinks();
        case "interpreters" -> interpreters();
        case "waiters" -> waiters();
        default -> throw new IllegalArgumentException(part);
      }
    }
    spark.stop();
    System.out.println("end");
  }

  private static Integer paused(Integer value) throws InterruptedException {
    reached.countDown();
    if (!goesOn.await(MOST_SECONDS, TimeUnit.SECONDS)) {
      waitedInVain = true;
    }
    return value;
  }

  private static void step(String name, Callable<Object> action) {
    try {
      System.out.println(name + " = " + action.call());
    } catch (Throwable e) {
      String state = e instanceof SparkThrowable known ? known.getSqlState() : null;
      String message = String.valueOf(e.getMessage()).lines().findFirst().orElse("");
      System.out.println(name + " ! " + e.getClass().getName() + " " + state + " " + message);
    }
  }

  private static Object sql(String text) {
    List<Row> rows = spark.sql(text).collectAsList();
    return rows.toString();
  }

  private static List<ProcessHandle> sidecars() {
    return ProcessHandle.current()
        .children()
        .filter(child -> child.isAlive() && child.info().command().orElse("").contains("python"))
        .toList();
  }

  /** Statements that do not use deltalog's tables start no Python process. */
  private static void others() {
    step("parquet", () -> sql("CREATE TABLE o USING parquet AS SELECT 1 AS id"));
    step("read parquet", () -> sql("SELECT * FROM o"));
    step("show tables", () -> sql("SHOW TABLES"));
    step("drop", () -> sql("DROP TABLE o"));
    step("sidecars of others", () -> sidecars().size());
  }

  private static void statements() {
    step("create", () -> sql("CREATE TABLE t (id INT, p STRING) USING deltalog"));
    step("insert", () -> sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"));
    step("select", () -> sql("SELECT * FROM t ORDER BY id"));
    step(
        "merge",
        () ->
            sql(
                "MERGE INTO t USING (SELECT 2 AS id, 'z' AS p) AS s ON t.id = s.id"
                    + " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"));
    Dataset<Row> more = spark.range(4, 8).select(col("id").cast("int"), expr("'m' AS p"));
    step(
        "append",
        () -> {
          more.write().format("deltalog").mode("append").saveAsTable("t");
          return spark.table("t").count();
        });
    step(
        "mergeInto",
        () -> {
          more.as("s").mergeInto("t", expr("t.id = s.id")).whenMatched().delete().merge();
          return spark.table("t").count();
        });
    step("in a new session", () -> spark.newSession().sql("DELETE FROM t WHERE id = 3").head());
    step("history", () -> spark.sql("DESCRIBE HISTORY t").select("operation").collectAsList());
    step("clone", () -> sql("CREATE TABLE c SHALLOW CLONE t"));
    step("rows of the clone", () -> sql("SELECT * FROM c ORDER BY id"));
    step("inventory", () -> vacuumed(spark.newSession()));
    step("default session", () -> SparkSession.getDefaultSession().get() == spark);
    step("sidecars", () -> sidecars().size());
  }

  /** Returns the rows of a VACUUM, whose query uses the session in Python. */
  private static long vacuumed(SparkSession session) {
    session.sql(
        "CREATE TEMP VIEW found AS SELECT '/nowhere' AS path, 0L AS length, true AS isDir, 0L AS"
            + " modificationTime");
    return session.sql("VACUUM t USING INVENTORY (SELECT * FROM found) DRY RUN").count();
  }

  /** Runs statements while a Python interpreter starts, which waits until the file `go` exists. */
  private static void waiters() throws Exception {
    List<Thread> threads =
        List.of("first", "second").stream()
            .map(name -> new Thread(() -> step(name, () -> sql("SELECT * FROM deltalog.`/none`"))))
            .toList();
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      while (!List.of(thread.getStackTrace()).toString().contains("CurrentPython")) {
        Thread.sleep(20);
      }
    }
    step("go", () -> new File("go").createNewFile());
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void errors() {
    step("no table", () -> spark.read().format("deltalog").load("/nowhere/x").count());
    step("no name", () -> sql("DELETE FROM nosuch WHERE id = 1"));
    step("division", () -> sql("INSERT INTO t SELECT 1 DIV (id - id), 'd' FROM t"));
    step(
        "cardinality",
        () ->
            sql(
                "MERGE INTO t USING (SELECT explode(array(1, 1)) AS id) AS s ON t.id = s.id WHEN"
                    + " MATCHED THEN UPDATE SET p = 'x'"));
    step("inventory without a view", () -> sql("VACUUM t USING INVENTORY (SELECT * FROM nosuch)"));
    step("job", () -> sql("INSERT INTO t SELECT raise_error('own text'), 'd' FROM t"));
    step("conflict", Job::conflict);
  }

  /** Deletes a row while an UPDATE of the row waits. */
  private static Object conflict() throws Exception {
    return whilePaused(
        () -> sql("UPDATE t SET id = paused(id) WHERE p = 'a'"),
        () -> sql("DELETE FROM t WHERE p = 'a'"));
  }

  /** Executes a statement that calls `paused`, and runs another action during this call. */
  private static Object whilePaused(Callable<Object> statement, Callable<Object> meanwhile)
      throws Exception {
    reached = new CountDownLatch(1);
    goesOn = new CountDownLatch(1);
    Thread other = new Thread(() -> step("meanwhile", () -> afterReached(meanwhile)));
    other.start();
    try {
      return statement.call();
    } finally {
      other.join();
    }
  }

  private static Object afterReached(Callable<Object> action) throws Exception {
    try {
      return reached.await(MOST_SECONDS, TimeUnit.SECONDS) ? action.call() : "too late";
    } finally {
      goesOn.countDown();
    }
  }

  private static Object kill() throws Exception {
    for (ProcessHandle sidecar : sidecars()) {
      sidecar.destroyForcibly();
      sidecar.onExit().get(MOST_SECONDS, TimeUnit.SECONDS);
    }
    return null;
  }

  private static void deaths() {
    step("create before", () -> sql("CREATE TABLE d (id INT) USING deltalog"));
    Dataset<Row> planned = spark.table("d");
    step("kill", Job::kill);
    step("insert after", () -> sql("INSERT INTO d VALUES (1)"));
    step("planned before", planned::count);
    step("sidecars after", () -> sidecars().size());
    step(
        "killed in INSERT",
        () -> whilePaused(() -> sql("INSERT INTO d SELECT paused(2)"), Job::kill));
    step("killed with secrets", () -> whilePaused(Job::saveWithSecret, Job::kill));
    step("killed in a job", () -> whileJobWaits("INSERT INTO d SELECT paused(3)", Job::kill));
    step("active jobs", Job::activeJobs);
    step("waited in vain", () -> waitedInVain);
    step("rows after", () -> sql("SELECT * FROM d"));
  }

  /**
   * Executes a statement whose job does not finish before the statement has ended. Runs an action
   * while the job waits.
   */
  private static Object whileJobWaits(String statement, Callable<Object> action) throws Exception {
    reached = new CountDownLatch(1);
    goesOn = new CountDownLatch(1);
    Thread other =
        new Thread(
            () ->
                step(
                    "reached", () -> reached.await(MOST_SECONDS, TimeUnit.SECONDS) && act(action)));
    other.start();
    try {
      return sql(statement);
    } finally {
      goesOn.countDown();
      other.join();
    }
  }

  private static boolean act(Callable<Object> action) throws Exception {
    action.call();
    return true;
  }

  /** Returns how many jobs still run after a while. Spark reports their ends with a delay. */
  private static int activeJobs() throws InterruptedException {
    int active = 1;
    for (int attempt = 0; active > 0 && attempt < 100; attempt++) {
      Thread.sleep(100);
      active = spark.sparkContext().statusTracker().getActiveJobIds().length;
    }
    return active;
  }

  private static Object stop() throws Exception {
    for (ProcessHandle sidecar : sidecars()) {
      new ProcessBuilder("kill", "-STOP", String.valueOf(sidecar.pid())).start().waitFor();
    }
    return null;
  }

  /** The Python process is suspended during a job, and before a statement: it does not answer. */
  private static void silence() {
    step("create", () -> sql("CREATE TABLE s (id INT) USING deltalog"));
    step("stopped in a job", () -> whileJobWaits("INSERT INTO s SELECT paused(1)", Job::stop));
    step("active jobs", Job::activeJobs);
    step("insert after", () -> sql("INSERT INTO s VALUES (2)"));
    step("stop", Job::stop);
    step("stopped before", () -> sql("INSERT INTO s VALUES (3)"));
    step("rows after", () -> sql("SELECT * FROM s"));
    step("sidecars after", () -> sidecars().size());
    step("waited in vain", () -> waitedInVain);
  }

  /** A streaming query continues after its Python process has died. */
  private static void streams() {
    for (int value = 0; value < 3; value++) {
      spark.range(value, value + 1).write().format("deltalog").mode("append").saveAsTable("s");
    }
    List<Object> seen = Collections.synchronizedList(new ArrayList<>());
    VoidFunction2<Dataset<Row>, Long> each =
        (rows, number) -> {
          seen.addAll(rows.collectAsList());
          if (number == 0) {
            kill();
          }
        };
    step(
        "stream",
        () -> {
          String checkpoint = spark.conf().get("spark.sql.warehouse.dir") + "/checkpoint";
          StreamingQuery query =
              spark
                  .readStream()
                  .option("maxFilesPerTrigger", 1)
                  .table("s")
                  .writeStream()
                  .foreachBatch(each)
                  .option("checkpointLocation", checkpoint)
                  .trigger(Trigger.AvailableNow())
                  .start();
          query.awaitTermination();
          return seen;
        });
    step("sidecars after the stream", () -> sidecars().size());
  }

  /** Streams into tables, from the table that `streams` has created. */
  private static void sinks() {
    step(
        "sink",
        () -> {
          sink("id", "named").outputMode("append").toTable("copied").awaitTermination();
          return sql("SELECT * FROM copied ORDER BY id");
        });
    step(
        "history of the sink",
        () -> spark.sql("DESCRIBE HISTORY copied").select("operation").collectAsList());
    step("update", () -> sink("id", "update").outputMode("update").toTable("copied"));
    step("stopped", Job::stopped);
    step("sidecars after the sinks", () -> sidecars().size());
  }

  private static DataStreamWriter<Row> sink(String column, String checkpoint) {
    return spark
        .readStream()
        .option("maxFilesPerTrigger", 1)
        .table("s")
        .selectExpr(column)
        .writeStream()
        .format("deltalog")
        .option(
            "checkpointLocation",
            spark.conf().get("spark.sql.warehouse.dir") + "/checkpoint of " + checkpoint)
        .trigger(Trigger.AvailableNow());
  }

  /** Stops a streaming query while its task waits. */
  private static Object stopped() throws Exception {
    String path = spark.conf().get("spark.sql.warehouse.dir") + "/stopped";
    reached = new CountDownLatch(1);
    goesOn = new CountDownLatch(1);
    StreamingQuery query = sink("paused(CAST(id AS INT)) AS id", "stopped").start(path);
    reached.await(MOST_SECONDS, TimeUnit.SECONDS);
    query.stop();
    goesOn.countDown();
    return query.exception() + ", table " + new File(path, "_delta_log").exists();
  }

  private static Object saveWithSecret() {
    String path = spark.conf().get("spark.sql.warehouse.dir") + "/secrets";
    Dataset<Row> rows = spark.sql("SELECT paused(1) AS id");
    rows.write().format("deltalog").option("aws_secret_access_key", SECRET).save(path);
    return null;
  }

  /** Uses each Python interpreter that an environment variable lists, in a context of its own. */
  private static void interpreters() throws Exception {
    for (String path : System.getenv("INTERPRETERS").split(File.pathSeparator)) {
      spark.stop();
      kill();
      spark = SparkSession.builder().config("spark.deltalog.python", path).getOrCreate();
      step(path, () -> sql("CREATE TABLE i (id INT) USING deltalog"));
    }
  }
}
