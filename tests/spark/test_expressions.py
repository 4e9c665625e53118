"""deltalog and Spark compute the same types and values for expressions (PROTOCOL, "CHECK Constraints").

For comparison, Spark computes each expression for all rows of `DATA`, in ANSI mode and with the session's time zone.
"""

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from deltalog import _internal
from deltalog.errors import DeltaError

UTC = timezone.utc
INSTANTS = [
    datetime(2024, 2, 29, 13, 5, 9, 12_345, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2024, 3, 10, 6, 59, 59, tzinfo=UTC),
    datetime(2024, 11, 3, 5, 30, tzinfo=UTC),
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(9998, 12, 31, 1, 2, 3, tzinfo=UTC),
    None,
]
DATA = pa.table(
    {
        "i": pa.array([0, 1, -7, 2_000_000_000, -2_147_483_648, 42, None], pa.int32()),
        "j": pa.array([3, -2, 5, 7, 1, -9, 4], pa.int32()),
        "l": pa.array([0, 1, -7, 4_611_686_018_427_387_904, -9_000_000_000, 42, None], pa.int64()),
        "y": pa.array([0, 1, -7, 100, -128, 42, None], pa.int8()),
        "h": pa.array([0, 1, -7, 30_000, -32_768, 42, None], pa.int16()),
        "f": pa.array([0.0, 0.1, -2.5, 1e30, float("nan"), 16_777_216.0, None], pa.float32()),
        "g": pa.array([-0.0, 0.1, -2.675, 1e15, float("nan"), 1e-7, None], pa.float64()),
        "d": pa.array([Decimal(v) for v in ["0.00", "0.05", "-1.25", "99999999.99", "-0.01", "2.50"]] + [None],
                      pa.decimal128(10, 2)),
        "e": pa.array([Decimal(v) for v in ["1", "3", "-7", "123456789012345678", "11", "2"]] + [None],
                      pa.decimal128(38, 0)),
        "w": pa.array([Decimal(v) for v in ["0.0000001", "1", "-3.1415926", "9999.9999999", "7", "0.5"]] + [None],
                      pa.decimal128(20, 7)),
        "s": pa.array(["", "abc", "  Ünï cödé ", "it's", "a%b_c", "ß𝄞x", None], pa.string()),
        "t": pa.array(["b", "", "c", "s", "%", "x", None], pa.string()),
        "n": pa.array([" 12 ", "-7", "+3", "0", "127", "-128", None], pa.string()),
        "q": pa.array(["1.5", "-0.25", " 1e3", "7", ".5", "5.", None], pa.string()),
        "c": pa.array([True, False, None, True, False, None, True], pa.bool_()),
        "b": pa.array([b"", b"a", b"\x00b", b"abc", b"xyz", b"1", None], pa.binary()),
        "a": pa.array([date(2024, 2, 29), date(1969, 12, 31), date(2023, 1, 1), date(2020, 12, 31), date(1582, 10, 4),
                       date(9999, 12, 31), None], pa.date32()),
        "z": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "k": pa.array([v and v.replace(tzinfo=None) for v in INSTANTS], pa.timestamp("us")),
        "o": pa.array([{"p": 1, "r": "x"}, {"p": None, "r": ""}, None, {"p": 5, "r": None}, {"p": 0, "r": "y"},
                       {"p": -1, "r": "z"}, {"p": 9, "r": "w"}], pa.struct([("p", pa.int32()), ("r", pa.string())])),
    }
)  # fmt: skip


def expressions(text: str) -> list[str]:
    """Splits `text` into expressions, which end with semicolons."""
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


EXPRESSIONS = [
    # Arithmetic: types of results, rounding, NULL.
    *expressions(r"""
    i % -1; j + 1; j - 1L; j * 2S; y + 1; y * 1Y; h % 7S; i % 7; i % j; l % -3; j / 2; i / j; l / 7L; 1 / 3;
    i DIV j; l DIV 7; 7 DIV j; -j; - (j + 1); +j; abs(j); abs(g); abs(d); pmod(i, 7); pmod(-7, j);
    mod(i, 5); pmod(g, 0.3D); f + f; f * 2.0F; f + 1; f - 1L; g + f; g / 3; f / 3F; g % 0.3D; j + 1.5D;
    j & 6; j | 8; j ^ 5; ~j; l & 255; j + 1 & 3 | 4 ^ 1; 2 + 3 * j - 4 / 2; y + h % 100S; h + i * 0;
    j + NULL; negative(j); i + 1L + l; j - -3; 1 - j - 2;
    """),
    # Chains of operators.
    *expressions(r"""
    1 + 2 + 3 - j; j - 1 - 2 - 3; j * 2 * 3L; d + 1 + 2.5 - w; d * 2 / 3 * j; 100 / 7 / 3 * j; j % 7 * 2 % 5 DIV 2;
    s || t || (j + 1) || 2; j + 1 || s || t; 1 + i % 9 * 2 + j * 3 - (i % 9 - j) + 4; f + g + 1 + 2.5; a + 1 + 2 - 3;
    y + 1 + h + i * 0L; (j + 1) + (j - 1) - (j - (1 - j)); j - (i % 3 - (i % 3 - 1)) - 1; 1 - 1 + NULL + j;
    i & 7 & 3 | j; -j - -j - -1;
    """),
    # Decimals.
    *expressions(r"""
    d + d; d - 1; d * d; d / 3; d / 3L; d / CAST(3 AS BIGINT); d + 1.5; d * 0.05; d % 0.3; -d; pmod(d, 0.3);
    d DIV 0.3; d + j; d * y; j * 1.10; d + 1.5D; d * f; e + 1; e / 3; e * 2; e - 0.5; e / 7.00; w * w;
    w + d; w / 3; w * d; w % 3; d / w; 1.0 / 3; d + CAST(NULL AS INT); d * 1e2;
    CAST(d AS DECIMAL(38,10)) * CAST(w AS DECIMAL(38,10)); d + CAST(1 AS DECIMAL(38,18)); 0.00 + d;
    d / 0.007; 123456789012345678901234567890 + e; e % 10;
    """),
    # Rounding.
    *expressions(r"""
    round(g, 2); round(g); round(g, -1); round(f, 1); round(d, 1); round(d); round(d, 5); round(d, -1);
    round(j, -1); round(j, 2); round(w, 3); round(2.5); round(-0.5D); floor(d); ceil(d); floor(g); ceil(g);
    ceiling(w); floor(l); ceil(e); isnan(g); isnan(f);
    """),
    # Conditions.
    *expressions(r"""
    j > 1; i = l; i = y; f = g; d = 0.05; d = w; d < j; e >= i; i <=> l; d <=> w; j <> 3; NOT c;
    c AND j > 0; c OR j > 0; c AND NULL; c OR NULL; c IS NULL; c IS NOT TRUE; (j > 0) = c; (j > 0) IS NULL;
    j IN (3, 4, NULL); j NOT IN (3, 4); j + 1 IN (4, 5); d IN (0.05, 2.5); s IN ('', 'abc');
    j BETWEEN 1 AND 4; j * 2 NOT BETWEEN 1 AND 4; i IS DISTINCT FROM 1; i IS NOT DISTINCT FROM NULL;
    s LIKE '%b%'; s NOT LIKE 'a_c'; s LIKE 'a\\%%'; upper(s) LIKE 'A%'; isnull(i); isnotnull(i);
    a > '2000-01-01'; a = DATE '2024-02-29'; z > TIMESTAMP '2000-01-01 00:00:00';
    year(a) = 2024 AND month(a) = 2; g > 0; g = CAST('NaN' AS DOUBLE); o.p > 0; o.r IS NULL; o IS NULL;
    s = t; s < t; b = X'61'; length(s) > 2 AND substring(s, 1, 1) = 'a'; i = 1 OR 1 / (i % 5 - 1) > 0;
    f > 16777217;
    """),
    # CASE and others.
    *expressions(r"""
    CASE WHEN j > 3 THEN 'big' WHEN j > 0 THEN 'small' ELSE s END; CASE WHEN c THEN j END;
    CASE j WHEN 3 THEN 1 ELSE 2L END; CASE WHEN j > 0 THEN 1 ELSE 2.5 END;
    CASE WHEN j > 0 THEN i ELSE 2.5D END; CASE WHEN i <> 0 THEN 10 DIV i END; if(j > 0, d, j); if(c, 1Y, 2);
    coalesce(i, j); coalesce(i, 1L); coalesce(d, 0); coalesce(NULL, s, 'x'); nvl(s, 'none'); ifnull(i, -1);
    nvl2(i, 'a', 'b'); nullif(j, 3); nullif(s, ''); coalesce(NULL, NULL); greatest(i, j);
    greatest(i, j, NULL); least(d, 1); least(g, f); greatest(s, t); greatest(a, DATE '2020-01-01');
    coalesce(j DIV nullif(i, 0), -1); coalesce(c, j > 0);
    """),
    # Strings.
    *expressions(r"""
    s || t; concat(s, '-', t); concat(s, j, d, a, c); s || j || 1; upper(s); lower(s); ucase(t); trim(s);
    ltrim(s); rtrim(s); length(s); char_length(s); length(b); octet_length(s); octet_length(b);
    substring(s, 2, 3); substring(s, 0, 2); substring(s, -3, 2); substring(s, -10, 9); substr(s, 2);
    substring(s, j, 2); substring(s, 2, -1); left(s, 2); left(s, j); right(s, 2); right(s, 0); right(s, j);
    replace(s, 'b', 'XX'); replace(s, t); replace(s, '', 'x'); contains(s, t); startswith(s, 'a');
    startswith(s, t); endswith(s, t); instr(s, t); instr(s, 'b'); reverse(s); lpad(s, 5, 'xy');
    rpad(s, 5, 'xy'); lpad(s, 2); rpad(s, 7); lpad(s, 3, '');
    """),
    # Dates and times.
    *expressions(r"""
    year(a); month(a); day(a); dayofmonth(a); quarter(a); dayofweek(a); weekday(a); dayofyear(a);
    weekofyear(a); year(z); month(z); day(z); hour(z); minute(z); second(z); hour(k); minute(k); second(k);
    month(k); extract(YEAR FROM z); extract(MONTH FROM a); date_format(z, 'yyyy-MM-dd HH:mm:ss');
    date_format(a, 'yyyyMMdd'); date_format(k, 'y/M/d h:m:s a');
    date_format(z, "yyyy'T'DDD E EEEE MMM MMMM"); date_format(z, 'SSS SSSSSS yy hh'); CAST(z AS DATE);
    to_date(z); date(k); CAST(z AS TIMESTAMP_NTZ); unix_micros(CAST(k AS TIMESTAMP));
    unix_micros(CAST(a AS TIMESTAMP)); CAST(a AS TIMESTAMP_NTZ); trunc(a, 'MONTH');
    unix_micros(date_trunc('HOUR', z)); unix_micros(date_trunc('DAY', z));
    unix_micros(date_trunc('WEEK', z)); unix_micros(date_trunc('QUARTER', z)); date_add(a, -30);
    date_add(a, j - 9); date_sub(a, j + 9); add_months(a, -1); last_day(a); a - 1; a + (j - 10);
    datediff(a, DATE '2000-01-01'); datediff(z, a); make_date(2024, abs(j), 1); unix_seconds(z);
    unix_millis(z); unix_micros(z); unix_micros(timestamp_seconds(j)); unix_micros(timestamp_millis(i));
    unix_micros(timestamp_micros(l)); unix_micros(TIMESTAMP '2024-03-10 01:30:00');
    """),
    # Casts.
    *expressions(r"""
    CAST(j AS STRING); CAST(d AS STRING); CAST(w AS STRING); CAST(c AS STRING); CAST(a AS STRING);
    CAST(z AS STRING); CAST(k AS STRING); CAST(j AS TINYINT); CAST(j AS DOUBLE); CAST(l AS FLOAT);
    CAST(l AS DOUBLE); CAST(j AS DECIMAL(12,2)); CAST(j AS BOOLEAN); CAST(c AS INT); CAST(c AS DOUBLE);
    CAST(d AS INT); CAST(w AS BIGINT); CAST(d AS DOUBLE); CAST(d AS FLOAT); CAST(w AS DECIMAL(10,2));
    CAST(d AS BOOLEAN); CAST(n AS INT); CAST(n AS TINYINT); CAST(q AS DOUBLE); CAST(q AS FLOAT);
    CAST(q AS DECIMAL(10,1)); CAST(s AS BINARY); CAST('yes' AS BOOLEAN); CAST('2024-01-31' AS DATE);
    unix_micros(CAST('2024-01-31 12:00:00' AS TIMESTAMP));
    unix_micros(CAST('2024-01-31T12:00:00+02:00' AS TIMESTAMP)); CAST(g * 0 AS BOOLEAN);
    CAST(2.675D AS DECIMAL(10,2)); CAST(1.9D AS INT); CAST(-1.9F AS BIGINT); CAST(z AS BIGINT);
    CAST(CAST(j AS STRING) AS INT); TRY_CAST(s AS INT); TRY_CAST(i AS TINYINT); TRY_CAST(l AS INT);
    TRY_CAST(d AS DECIMAL(4,2)); TRY_CAST(g AS INT); CAST(NULL AS DATE); CAST(j > 0 AS INT) + 1;
    CAST(g AS FLOAT); CAST(f AS DOUBLE);
    """),
    # Floating-point functions, to the last digit.
    *expressions(r"""
    sqrt(j); sqrt(g); sqrt(d); sqrt(w); cbrt(g); cbrt(j); cbrt(w); cbrt(l); cbrt(f); exp(j); exp(d); exp(g); exp(w /
    7);
    ln(i); ln(g); ln(w); log(d); log(2, w); log(g, j); log(1, w); log10(g); log10(w); log10(i); log10(f); log2(w);
    log2(l); log10(1e-310D * (j + 10)); cbrt(1e-310D * j); pow(j, 2); power(g, j); pow(w, 0.3); power(d, 1.5D);
    pow(j, 0.5D); power(1, g); pow(0, j); sign(j); sign(g); signum(d); sqrt(-1); ln(0); exp(1000); sign(f);
    pow(NULL, j); sqrt(NULL); pow(-1, CAST('Infinity' AS DOUBLE)); power(g, 0);
    """),
    # Digests, and strings that are made from parts.
    *expressions(r"""
    md5(s); md5(b); sha(s); sha1(b); sha2(s, 256); sha2(s, 0); sha2(b, 224); sha2(s, 384); sha2(s, 512); sha2(s, 1);
    sha2(s, j); crc32(s); crc32(b); md5(NULL); concat_ws('-', s, t); concat_ws(t, s, j, d, a, c); concat_ws(',');
    concat_ws(NULL, s); concat_ws('x', NULL, s); repeat(s, 2); repeat(s, j); repeat(t, -1); hex(i); hex(l); hex(s);
    hex(b); hex(y); unhex(hex(s)); unhex('abc'); unhex('xy'); unhex(s); unhex(''); ascii(s); ascii(t); chr(65);
    chr(j);
    chr(i); chr(256); char(200); translate(s, 'abc', 'xy'); translate(s, 'a%', 'ö'); translate(s, t, 'q');
    translate(s, 'aa', 'xy');
    """),
    # Patterns, and casts with `::` and function names.
    *expressions(r"""
    s ILIKE 'ABC'; s ILIKE '%ÜNÏ%'; s NOT ILIKE 'A%'; s ILIKE 'a$%%' ESCAPE '$'; s RLIKE 'b'; s RLIKE '^a.c$';
    s NOT RLIKE 'b+'; s REGEXP '[a-c]+$'; regexp_like(s, '\\d'); regexp(s, '(?i)ABC'); rlike(s, '\\s'); s RLIKE NULL;
    s RLIKE ''; s RLIKE '\\w{3}'; s RLIKE '[^\\w ]'; s RLIKE '(?i)[A-C]\\S'; s RLIKE '^$'; t RLIKE '[\\[\\]%-]';
    concat(s, '\n') RLIKE 'c$'; concat(s, '\r\n') RLIKE 'c$'; concat(s, '\n') RLIKE 'a.c.'; s RLIKE 'a|ß|%';
    concat(s, '\n') RLIKE '(?s)c.'; CAST(j AS STRING) RLIKE '^-?[0-9]+$'; CAST(a AS STRING) RLIKE '^\\d{4}-02';
    regexp_replace(s, '[aeiou]', '*'); regexp_replace(s, '(a)(.)', '$2$1'); regexp_replace(s, '\\s+$', '');
    regexp_replace(s, '^\\s+|\\s+$', ''); regexp_replace(t, 'x*', '-'); regexp_replace(t, '', '-');
    regexp_replace(s, '.', '\\$'); regexp_replace(concat(s, ' \n'), '\\s+$', ''); regexp_replace(s, 'c$', 'X');
    regexp_replace(concat(s, '\n'), 'c$', 'X'); regexp_replace(s, '(b)|(c)', '[$1]'); regexp_replace(s, 'b', NULL);
    regexp_replace(s, '$', '!'); regexp_replace(concat(s, '\n'), '$', '!'); regexp_replace(s, '(.)', '$10');
    regexp_extract(s, '(b)(c)', 2); regexp_extract(s, '(b)'); regexp_extract(s, 'b.', 0);
    regexp_extract(s, '(x)?b'); regexp_extract(s, '([a-z]+)%([a-z])', 2); regexp_extract(s, '(?:a|b)+?(.)', 1);
    regexp_extract(concat(s, '\n'), '.$', 0);
    '12'::INT; j::STRING; d::DOUBLE + 1; -j::BIGINT; - y::INT; (-1)::STRING; j::DECIMAL(12,2) * 2; (j + 1)::BIGINT;
    s::BINARY;    '2024-01-31'::DATE > a; n::INT::STRING; j + '1'::INT; i::BIGINT > 5;
    """),
    # Intervals. Timestamps are converted to integers for the comparison.
    *expressions(r"""
    date_sub(a, 1) + INTERVAL 1 DAY; a - INTERVAL 1 MONTH; datediff(a + INTERVAL 1 DAY, a);
    datediff(a - INTERVAL '3' DAY, a); datediff(a + INTERVAL 2 WEEKS, a); datediff(a + INTERVAL 1 MONTH, a);
    datediff(a - INTERVAL 1 YEAR, a); datediff(a + INTERVAL '1 month', a); datediff(INTERVAL 5 DAYS + a, a);
    datediff(a + INTERVAL 1 YEAR 2 MONTHS, a); datediff(a - INTERVAL -1 MONTH, a);
    unix_micros(a + INTERVAL 5 HOURS); unix_micros(a - INTERVAL 1 DAY 2 HOURS); unix_micros(a + INTERVAL 24 HOURS);
    unix_micros(z + INTERVAL 1 DAY); unix_micros(z - INTERVAL 24 HOURS); unix_micros(z + INTERVAL 1 MONTH);
    unix_micros(z - INTERVAL 3 YEARS); unix_micros(z + INTERVAL 1.5 SECONDS); unix_micros(z + INTERVAL 36 HOURS);
    unix_micros(z - INTERVAL 90 MINUTES); unix_micros(z - INTERVAL '1' DAY + INTERVAL 1 HOUR);
    unix_micros(z + INTERVAL 7 MILLISECONDS); unix_micros(z - INTERVAL 7 MICROSECONDS);
    (k + INTERVAL 1 DAY)::STRING; k - INTERVAL 25 HOURS; (k + INTERVAL 1 MONTH)::STRING;
    (INTERVAL '2 days 3 hours' + k)::STRING; a + INTERVAL 1 DAY > DATE '2000-01-01';
    z > TIMESTAMP '2000-01-01 00:00:00' - INTERVAL 10 DAYS; a BETWEEN a - INTERVAL 1 DAY AND a + INTERVAL 1 DAY;
    """),
    # Dates, timestamps and strings are compared as their common type.
    *expressions(r"""
    z > a; z >= CAST(a AS TIMESTAMP); a < z; k > a; a = k; z = k; k <= z; z <=> a; k <=> z; z <> k;
    z > DATE '2024-02-29'; DATE '2024-02-29' <= k; a > TIMESTAMP '2023-01-01 00:00:00';
    a >= TIMESTAMP_NTZ '2023-01-01 00:00:00'; k < TIMESTAMP '2024-02-29 08:05:10'; z = TIMESTAMP_NTZ '1900-01-01
    00:00:00';
    k = TIMESTAMP '1899-12-31 19:00:00'; z > '2024-02-29'; '2024-02-29 13:05:09.012345Z' = z; z <= '2024'; z > '
    2024-3 ';
    z >= '2024-2-29 8:5:9.012345'; z < '2024-02-29 08:05'; z = '2024-02-29 14:05:09.012345 Europe/Berlin';
    z <=> '2024-02-29 13:05:09.012345+00:00'; z > '2024-03-10 02:30:00'; z = '2024-11-03 01:30:00'; k > '2024';
    k = '2024-02-29 13:05:09.012345+05:00'; k < '2024-03-10T06:59:59.1'; a = '2024-2-29'; a > '2023'; a >= '2020-12 ';
    a = '2024-02-29 12:00:00'; a < '2023-1-1Tx'; z IN ('2024-02-29 08:05:09.012345', '1900-01-01 00:00:00Z');
    z IN (DATE '2024-01-01', a, k, NULL); a IN ('2024-02-29', TIMESTAMP '2023-01-01 00:00:00'); a NOT IN (k, z);
    k IN (DATE '1900-01-01', '2024-03-10 06:59:59'); '2024-02-29' IN (a); z BETWEEN '2024' AND DATE '2025-01-01';
    k NOT BETWEEN a AND z; z IS DISTINCT FROM k; a = CAST(a AS STRING); z = CAST(z AS STRING); k > CAST(a AS STRING);
    CAST(k AS STRING) >= a; CASE a WHEN '2024-02-29' THEN 1 WHEN TIMESTAMP '2023-01-01 00:00:00' THEN 2 END;
    unix_micros(coalesce(z, a)); coalesce(k, a)::STRING; unix_micros(greatest(a, z)); least(k, a)::STRING;
    unix_micros(if(c, k, z)); coalesce(a, '2024-1'); nullif(k, a)::STRING; unix_micros(nullif(z, a));
    unix_micros(CASE WHEN c THEN a ELSE z END); unix_micros(CAST('2024-1-1 1' AS TIMESTAMP));
    CAST('2024' AS DATE); CAST('2024-02-29 x' AS DATE); CAST('2024-1-1 1:2:3+05:00' AS TIMESTAMP_NTZ)::STRING;
    unix_micros(CAST('2024-07-01 00:00:00 Europe/Berlin' AS TIMESTAMP)); DATE '2024-01-01' = '2024';
    TIMESTAMP '2024-01-01 00:00:00' = DATE '2024-01-01'; TIMESTAMP_NTZ '2024-01-01 00:00:00' = '2024-1';
    TIMESTAMP '2024-01-01 00:00:00' = TIMESTAMP_NTZ '2024-01-01 00:00:00'; DATE '2024-01-01' < TIMESTAMP '2024-01-01
    00:00:01';
    """),
    # Rounding up, down and of halves, and capital letters.
    *expressions(r"""
    floor(i); ceil(l); floor(y); ceil(f % 1000); floor(g % 1000, 2); ceil(g % 1000, 2); floor(f / 1e20D, 3); ceil(d,
    1); floor(d, 1);
    floor(d, 5); ceil(d, -1); floor(d, -1); floor(w, 3); ceil(w, -2); floor(j, -1); ceil(j, -1); floor(y, -3);
    ceil(y, -3);
    ceil(l, -2); floor(h, 0); ceil(3, 2); floor(NULL); floor(e); ceil(e, -3); floor(g * 0);
    bround(g, 2); bround(g); bround(g, -1); bround(f / 4, 1); bround(d, 1); bround(d); bround(d, -1); bround(j, -1);
    bround(w, 3); bround(2.5); bround(-3.5D); bround(0.125F, 2); bround(y / 2); bround(15S, -1); bround(2.665D, 2);
    bround(h DIV 100, -1); bround(e, -1); initcap(s); initcap(t); initcap(upper(s)); initcap('one_two three-four');
    initcap('ǆ ß ŉx ﬃx'); initcap('');
    """),
    # Casts of numbers.
    *expressions(r"""
    CAST(g AS DECIMAL(38,20)); CAST(g AS DECIMAL(20,2)); CAST(g / 3 AS DECIMAL(38,18)); CAST(f AS DECIMAL(38,5));
    CAST(f % 100F / 7F AS DECIMAL(38,30)); CAST(j / 7D AS DECIMAL(10,3)); CAST(j / 8D AS DECIMAL(10,2)); CAST(w AS
    DOUBLE);
    CAST(w AS FLOAT); CAST(e AS DOUBLE); CAST(e AS FLOAT); CAST(e / 7 AS DOUBLE); CAST(e / 7 AS FLOAT); CAST(d / 7
    AS FLOAT);
    CAST(9007199791611905BD AS FLOAT); CAST(16777217BD AS FLOAT); CAST(l AS DECIMAL(20,0)); CAST(nullif(g,
    CAST('NaN' AS DOUBLE)) % 100 AS INT);
    CAST(nullif(f, CAST('NaN' AS FLOAT)) % 100 AS TINYINT); CAST(9223372036854775807D AS BIGINT);
    CAST(-9223372036854775808D AS BIGINT);
    CAST(127.9D AS TINYINT); CAST(-128.9F AS TINYINT); CAST(2147483647.9D AS INT); CAST(w AS INT); CAST(e AS BIGINT);
    CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(10,2)); CAST(CAST('-Infinity' AS FLOAT) AS DECIMAL(10,2)) + 1;
    CAST(d AS DECIMAL(20,6)); CAST(w AS DECIMAL(12,1)); CAST(0.005D AS DECIMAL(10,2)); CAST(1.005D AS DECIMAL(10,2));
    CAST(5e-324 AS DECIMAL(38,38));
    """),
    # Arrays, structs and maps.
    *expressions(r"""
    array(); array(i, j); array(1, 2.5, j); array(y, l); array(NULL, i); array(NULL); array(s, 'x'); array(d, w, 1);
    array(array(), array(i), NULL); array(f, g); array(a, DATE '2024-01-01'); map(); map('a', i, 'b', j);
    map(1, s, 2L, t); map(j, i); map('x', NULL, 'y', 1); map('a', array(i), 'b', array()); map(-0.0D, i);
    map(1.5, 'a', 10, 'b'); named_struct('p', i, 'Q', s); named_struct('p', NULL);
    named_struct('n', named_struct('m', array(map('k', z)))); struct(i, s, 1, J, o.R);
    struct(i AS x, s || 't', j + 1 AS `y z`); struct(o); struct(NULL AS a);
    array(struct(i, s), struct(l AS i, t AS s)); array(named_struct('a', 1), named_struct('A', 2.5));
    coalesce(NULL, array(i)); CASE WHEN j > 3 THEN map(j, s) END; if(j > 0, array(1), array(2.5));
    if(i IS NULL, NULL, map(i, 1)); coalesce(o, named_struct('p', 1, 'r', 'x')); if(c, struct(i AS p, s AS r), o);
    array(o, o); array(i) IS NULL; split(s, ''); split(s, 'b'); split(s, '[bc]'); split(s, 'b', 1); split(s, '', 2);
    split(s, '.', 2); split(s, '.'); split(t, 'x*'); split('abxc', 'x*'); split(s, 'a|$'); split('a,b,,c,,', ',');
    split('a,b,,c,,', ',', 3); split(',a', ',', -1); split(s, '\\s+', j - 3); split(s, 'b', NULL); split(s, NULL);
    split('', ','); split('', ''); split('aXbXXc', '(?i)x'); split('abc', '(?:)', 0); split('one two', '^', 5);
    split('aß𝄞', '', 2); size(split(s, 'b')); size(array(i, j)); size(map(j, i)); size(array());
    cardinality(if(c, array(i), NULL)); array_contains(array(i, j), 42); array_contains(array(i, j), l);
    array_contains(array(1, 2), i); array_contains(split(s, ''), t); array_contains(array(f, g), -0.0D);
    array_contains(array(g), CAST('NaN' AS DOUBLE)); array_contains(array(d), 2.5);
    array_contains(if(c, array(1), NULL), 1); array_contains(array(s), 'abc') AND array_contains(array(1), 1);
    named_struct('a', b, 'b', k, 'c', c); array(array(1, NULL), array(2L)); nvl2(i, array(i), array());
    """),
    # Names.
    *expressions(r"""
    `j` + J; o.p + 1; O.P; concat(o.r, '!');
    """),
]

# These expressions have no value in Spark's ANSI mode, but raise an error.
ERRORS = expressions(r"""
    2147483647 + 1; -2147483648 - 1; 100000 * 100000; 127Y + 1Y; 9223372036854775807 + 1; 1 / 0; 1 % 0;
    1 DIV 0; 1.0 / 0; 1.5D / 0D; pmod(1, 0); 1.5D % 0D; abs(-2147483648); -(-2147483648);
    -9223372036854775808 DIV -1; CAST(300 AS TINYINT); CAST('x' AS INT); CAST('1.5' AS INT);
    CAST('2024-13-01' AS DATE); CAST(1e10 AS INT); CAST(CAST('NaN' AS DOUBLE) AS INT);
    CAST(1234.5 AS DECIMAL(4,2)); CAST('maybe' AS BOOLEAN); CAST('' AS DOUBLE); make_date(2023, 2, 29);
    99999999999999999999999999999999999999 + 1; round(127Y, -1);
    99999999999999999999999999999999999999 * 10; CASE WHEN 1 / 0 > 1 THEN 1 END;
    timestamp_seconds(9223372036854775807); floor(1e30); ceil(CAST('Infinity' AS DOUBLE));
    floor(9223372036854775807D);
    floor(1e20, 2); bround(127Y, -1); bround(2147483647, -1); round(9223372036854775807, -1);
    ceil(99999999999999999999999999999999999999, -1); CAST(1.0E19 AS BIGINT); CAST(128D AS TINYINT);
    CAST(-2147483649D AS INT); CAST(CAST('Infinity' AS FLOAT) AS BIGINT); CAST(128.0 AS TINYINT);
    CAST(99.995 AS DECIMAL(4,2)); CAST(1e300 AS DECIMAL(38,0)); CAST(3.4e38F AS DECIMAL(38,0));
    CAST('2024-01-01T' AS TIMESTAMP); CAST('2024-1-1 24:00' AS TIMESTAMP_NTZ); CAST('2024-01x' AS DATE);
    CAST('2024-01-01 00:00:00 mars' AS TIMESTAMP); coalesce(CAST('x' AS STRING), DATE '2024-01-01');
    map(1, 2, 1, 3); map(NULL, 1); map(0.0D, 1, -0.0D, 2); array(1, 1 / 0);
    map(CAST('NaN' AS DOUBLE), 1, CAST('NaN' AS DOUBLE), 2); map(CAST(NULL AS INT), 1); struct(1 DIV 0);
""")

# These expressions have no value that could be compared.
RANDOM = expressions("uuid(); rand(); random();")

# These expressions are refused before they are evaluated.
REFUSED = expressions(r"""
    'x' RLIKE '('; 'x' RLIKE '*'; regexp_replace('x', '[', ''); regexp_extract('x', '(x', 1); regexp_extract('x',
    'x', 1);
    TIMESTAMP '2024-01-01 00:00:00' = 'x'; DATE '2024-01-01' > '2024-13'; TIMESTAMP_NTZ '2024-01-01 00:00:00' < '';
    TIMESTAMP '2024-01-01 00:00:00' = 5; DATE '2024-01-01' IN (1, 2);
""")

# Before Spark 4.3, values above the greatest BIGINT became the greatest BIGINT.
# If a string was split at every character, the rest after the last part was lost.
if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 3):
    SATURATED = expressions("floor(1e30); ceil(CAST('Infinity' AS DOUBLE)); floor(9223372036854775807D);")
    ERRORS = [text for text in ERRORS if text not in SATURATED]
    LOST = expressions("split(s, '', 2); split('aß𝄞', '', 2);")
    EXPRESSIONS = [text for text in EXPRESSIONS if text not in LOST]

SIZE = 60


def spark_type(data_type: pa.DataType) -> str:
    names = {
        "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double",
        "string": "string", "bool": "boolean", "binary": "binary", "date32[day]": "date", "null": "void",
        "timestamp[us]": "timestamp_ntz", "timestamp[us, tz=UTC]": "timestamp",
    }  # fmt: skip
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_list(data_type):
        return f"array<{spark_type(data_type.value_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{spark_type(data_type.key_type)},{spark_type(data_type.item_type)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in data_type)}>"
    return names[str(data_type)]


def plain(value: Any) -> str:
    """Returns a string that is equal for equal values of the same type. It distinguishes NaN, 0.0 and -0.0."""
    match value:
        case bytes() | bytearray():
            return repr(bytes(value))
        case Decimal():
            text = f"{value:f}"
            return text.rstrip("0").rstrip(".") if "." in text else text
        case Row():
            return repr([(name, plain(part)) for name, part in zip(value.__fields__, value, strict=True)])
        case dict():
            return repr(sorted((plain(key), plain(part)) for key, part in value.items()))
        case list():
            return repr([plain(part) for part in value])
        case _:
            return repr(value)


def as_spark(value: Any, data_type: pa.DataType) -> Any:
    """Converts a value to the form that Spark returns: a struct as a `Row`, a map as a dict, an instant in local
    time.
    """
    if value is None:
        return None
    if pa.types.is_list(data_type):
        return [as_spark(part, data_type.value_type) for part in value]
    if pa.types.is_map(data_type):
        kinds = (data_type.key_type, data_type.item_type)
        return {as_spark(key, kinds[0]): as_spark(part, kinds[1]) for key, part in value}
    if pa.types.is_struct(data_type):
        fields = list(data_type)
        row = Row(*(field.name for field in fields))
        return row(*(as_spark(value[field.name], field.type) for field in fields))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return datetime.fromtimestamp(value.timestamp())
    return value


@pytest.mark.parametrize("start", range(0, len(EXPRESSIONS), SIZE))
def test_expressions_have_sparks_values(spark: SparkSession, tmp_path: Any, start: int) -> None:
    expressions = EXPRESSIONS[start : start + SIZE]
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    pq.write_table(DATA.add_column(0, "row", pa.array(range(len(DATA)))), tmp_path / "data.parquet")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    try:
        source = spark.read.parquet(str(tmp_path / "data.parquet"))
        frame = source.selectExpr("row", *(f"({text}) AS v{n}" for n, text in enumerate(expressions)))
        types = [field.dataType.simpleString() for field in frame.schema.fields[1:]]
        found = sorted(frame.collect(), key=lambda row: int(row["row"]))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    different = []
    for n, text in enumerate(expressions):
        try:
            ours = pa.table(_internal.evaluate(DATA, text, zone))["value"]
        except DeltaError as error:
            different.append(f"{text}: {error}")
            continue
        values = [plain(as_spark(value, ours.type)) for value in ours.to_pylist()]
        expected = [plain(row[f"v{n}"]) for row in found]
        if spark_type(ours.type) != types[n]:
            different.append(f"{text}: {spark_type(ours.type)}, not {types[n]}")
        elif values != expected:
            different.append(f"{text}: {values}, not {expected}")
    assert not different, "\n".join(different)


def test_what_has_no_value_in_spark_is_an_error(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    row = pa.table({"x": pa.array([1], pa.int32())})
    try:
        for text in ERRORS + REFUSED:
            with pytest.raises(PySparkException):
                spark.range(1).selectExpr(text).collect()
            with pytest.raises(DeltaError, match="has no value" if text in ERRORS else None):
                pa.table(_internal.evaluate(row, text, "UTC"))
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_random_values_have_sparks_types(spark: SparkSession) -> None:
    row = pa.table({"x": pa.array([1], pa.int32())})
    fields = spark.range(1).selectExpr(*(f"{text} AS v{n}" for n, text in enumerate(RANDOM))).schema.fields
    ours = [pa.table(_internal.evaluate(row, text, "UTC")).schema.field("value").type for text in RANDOM]
    assert [spark_type(one) for one in ours] == [field.dataType.simpleString() for field in fields]
