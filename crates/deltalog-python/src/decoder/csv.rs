//! Reads CSV as RFC 4180 defines it. Reading is strict: a quote within an unquoted value, text after a closing quote,
//! and a quote that is never closed are errors, because otherwise rows could be wrong without notice.
//!
//! ```text
//! a,"b ""c""",,""     a | b "c" | NULL | empty text
//! ```

/// Splits bytes, which arrive in pieces, into records.
#[derive(Debug)]
pub(super) struct Records {
    delimiter: u8,
    state: State,
    /// The concatenated values of the current record, without delimiters.
    text: Vec<u8>,
    /// The end of each value, and whether the value was in quotes.
    ends: Vec<(usize, bool)>,
    /// Whether the current value began with a quote.
    is_quoted: bool,
    /// The current line, and the line in which the current record begins.
    line: usize,
    begun: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the beginning of a record.
    Record,
    /// At the beginning of a value.
    Value,
    Unquoted,
    Quoted,
    /// After a quote in a quoted value. It is the closing quote, or the first of two quotes that stand for one.
    Quote,
    /// After a carriage return.
    Return,
}

/// A record, and the line in which it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) line: usize,
    text: &'a [u8],
    ends: &'a [(usize, bool)],
}

impl<'a> Record<'a> {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the values, and whether they were in quotes.
    pub(super) fn values(self) -> impl Iterator<Item = Result<(&'a str, bool), String>> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, is_quoted)| {
            let value = self.text.get(start..end).unwrap_or_default();
            start = end;
            let text = std::str::from_utf8(value).map_err(|_| "a value is not text in UTF-8".to_owned())?;
            Ok((text, is_quoted))
        })
    }
}

/// The number of the line with the problem, and a description of the problem.
pub(super) type Failure = (usize, String);

impl Records {
    pub(super) fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            state: State::Record,
            text: Vec::new(),
            ends: Vec::new(),
            is_quoted: false,
            line: 1,
            begun: 1,
        }
    }

    /// Passes the records that end within `bytes` to the caller's function.
    pub(super) fn feed(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Record<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for &byte in bytes {
            if self.state == State::Return {
                if byte != b'\n' {
                    return Err((self.line, "there is a carriage return within the line".to_owned()));
                }
                self.end(&mut take)?;
                continue;
            }
            match (self.state, byte) {
                (State::Quoted, b'"') => self.state = State::Quote,
                (State::Quoted, _) => {
                    self.line += usize::from(byte == b'\n');
                    self.text.push(byte);
                }
                (State::Quote, b'"') => {
                    self.text.push(b'"');
                    self.state = State::Quoted;
                }
                (_, b'\n') => self.end(&mut take)?,
                (_, b'\r') => self.state = State::Return,
                (_, _) if byte == self.delimiter => {
                    self.value();
                    self.state = State::Value;
                }
                (State::Record | State::Value, b'"') => {
                    self.is_quoted = true;
                    self.state = State::Quoted;
                }
                (State::Quote, _) => {
                    return Err((self.line, "there is text after the closing quote of a value".to_owned()));
                }
                (_, b'"') => {
                    return Err((
                        self.line,
                        "there is a quote within a value that is not in quotes".to_owned(),
                    ));
                }
                (_, _) => {
                    self.text.push(byte);
                    self.state = State::Unquoted;
                }
            }
        }
        Ok(())
    }

    /// Passes the last record, which may lack an end of line, to the caller's function.
    pub(super) fn finish(
        &mut self,
        mut take: impl FnMut(Record<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self.state {
            State::Record => Ok(()),
            State::Quoted => Err((self.begun, "a quote is not closed".to_owned())),
            _ => self.end(&mut take),
        }
    }

    fn value(&mut self) {
        self.ends.push((self.text.len(), self.is_quoted));
        self.is_quoted = false;
    }

    fn end(&mut self, take: &mut impl FnMut(Record<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        self.value();
        let taken = take(Record { line: self.begun, text: &self.text, ends: &self.ends });
        self.text.clear();
        self.ends.clear();
        self.state = State::Record;
        self.line += 1;
        self.begun = self.line;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = Vec<(usize, Vec<(String, bool)>)>;

    /// Reads the text once in a single piece and once in pieces of each length, and compares the results.
    fn read(text: &str) -> Result<Read, Failure> {
        let by = |length: usize| {
            let (mut records, mut read) = (Records::new(b','), Read::new());
            let mut take = |record: Record<'_>| {
                let values =
                    record.values().map(|value| value.map(|(text, quoted)| (text.to_owned(), quoted)));
                read.push((
                    record.line,
                    values.collect::<Result<_, _>>().map_err(|text| (record.line, text))?,
                ));
                Ok(())
            };
            for piece in text.as_bytes().chunks(length) {
                records.feed(piece, &mut take)?;
            }
            records.finish(&mut take)?;
            Ok(read)
        };
        let whole = by(text.len().max(1));
        for length in 1..text.len() {
            assert_eq!(by(length), whole, "{text:?} in pieces of {length}");
        }
        whole
    }

    fn values(text: &str) -> Vec<Vec<String>> {
        let read = read(text).unwrap();
        read.into_iter().map(|(_, values)| values.into_iter().map(|(text, _)| text).collect()).collect()
    }

    #[test]
    fn records() {
        assert_eq!(values("a,b\n1,2\n"), [["a", "b"], ["1", "2"]]);
        assert_eq!(values("a,b\r\n1,2"), [["a", "b"], ["1", "2"]]);
        assert_eq!(values("\"a\nb\",\"c\"\"d\",\n"), [["a\nb", "c\"d", ""]]);
        assert_eq!(values(""), Vec::<Vec<String>>::new());
        assert_eq!(values("\n\n"), [[""], [""]]);
        assert_eq!(values(","), [["", ""]]);
        assert_eq!(values("\"\""), [[""]]);
    }

    #[test]
    fn quotes_and_lines() {
        let read = read("x\n\"a\nb\",c\n\"\",\n").unwrap();
        assert_eq!(read.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(read[2].1, [(String::new(), true), (String::new(), false)]);
    }

    #[test]
    fn what_is_wrong() {
        assert_eq!(read("a\n\"b\nc").unwrap_err(), (2, "a quote is not closed".to_owned()));
        assert!(read("a\"b").unwrap_err().1.contains("within a value"));
        assert!(read("\"a\"b").unwrap_err().1.contains("after the closing quote"));
        assert!(read("a\rb").unwrap_err().1.contains("carriage return"));
    }
}
