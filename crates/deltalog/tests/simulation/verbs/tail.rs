//! Streams of the table. A stream returns the files of a snapshot, and then the files of each commit, each of them
//! once.

use arrow::array::AsArray;
use deltalog::engine::replay::DeletionVectorColumn;
use deltalog::{
    ChangeHandling, ErrorKind, ListColumn, Result, Snapshot, StreamBatch, StreamLimits, StreamOffset,
    StreamOptions, TableStream,
};
use deltalog_testkit::judge::{Intent, Outcome, Streamed};

use crate::session::Session;

/// A stream that a process reads.
pub struct Tail {
    /// The number of the stream among the streams of the process.
    number: u64,
    stream: TableStream,
    /// The version of the snapshot with which the stream began.
    began_with: u64,
    offset: Option<StreamOffset>,
}

impl Tail {
    fn begin(session: &Session<'_>, number: u64) -> Result<Self> {
        let stream = open(session)?;
        Ok(Self { number, began_with: stream.snapshot().version(), stream, offset: None })
    }

    /// Opens the stream again at its saved offset, as a new process would.
    fn begin_again(self, session: &Session<'_>) -> Result<Self> {
        let offset = self.offset.map(|offset| StreamOffset::parse(&offset.to_string()));
        Ok(Self { stream: open(session)?, offset: offset.transpose()?, ..self })
    }
}

/// Reads the next batch of a stream. Now and then the stream is opened again.
pub fn tail(session: &mut Session<'_>) {
    let again = session.process.below(4) == 0;
    session.operate("tail", Intent::Maintain, |session, _| {
        let before = session.tail.take();
        let tail = match before {
            // A stream that has not returned anything yet would begin with a different snapshot.
            Some(tail) if tail.offset.is_some() && again => tail.begin_again(session)?,
            Some(tail) => tail,
            None => {
                session.tails += 1;
                Tail::begin(session, session.tails)?
            }
        };
        let limits = StreamLimits::new(Some(1 + session.process.below(3)), None);
        let error = match next(&tail, limits) {
            Ok((offset, streamed)) => {
                session.tail = Some(Tail { offset, ..tail });
                return Ok(streamed.map_or(Outcome::Done, Outcome::Streamed));
            }
            Err(error) => error,
        };
        match error.kind() {
            // The stream failed, and will read the batch again later.
            ErrorKind::Unavailable => session.tail = Some(tail),
            // A stream that is opened again continues with the new schema.
            ErrorKind::SchemaMismatch => {
                session.process.note(format!("must open the stream again: {error}"));
                if tail.offset.is_some() {
                    session.tail = Some(tail.begin_again(session)?);
                }
                return Ok(Outcome::Done);
            }
            ErrorKind::TableReplaced => {
                session.process.note(format!("stops reading the stream: {error}"));
                return Ok(Outcome::Done);
            }
            _ => {}
        }
        Err(error)
    });
}

fn open(session: &Session<'_>) -> Result<TableStream> {
    let options = StreamOptions::new().changes(ChangeHandling::Ignore);
    TableStream::open(&Snapshot::open(&session.storage, None)?, options, &session.environment)
}

/// Returns the files of the next batch, if there is one, and the offset after it.
fn next(tail: &Tail, limits: StreamLimits) -> Result<(Option<StreamOffset>, Option<Streamed>)> {
    let before = tail.offset.as_ref();
    let Some(end) = tail.stream.latest(before, limits)?.filter(|end| Some(end) != before) else {
        return Ok((tail.offset.clone(), None));
    };
    let files = files(&tail.stream.batch(before, &end)?)?;
    tail.stream.release(&end)?;
    let streamed = Streamed {
        stream: tail.number,
        began_with: tail.began_with,
        version: end.version(),
        is_initial: end.is_initial(),
        files,
    };
    Ok((Some(end), Some(streamed)))
}

/// Returns the logical files of a batch.
fn files(batch: &StreamBatch) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for batch in batch.listing(None)?.columns([ListColumn::Path, ListColumn::DeletionVector]).read()? {
        let batch = batch?;
        let vectors = DeletionVectorColumn::of_list(&batch)?;
        for (row, path) in batch.column(0).as_string::<i32>().iter().enumerate() {
            let vector = vectors.get(row)?.map(|vector| format!("#{}", vector.unique_id()));
            files.push(path.unwrap().to_owned() + &vector.unwrap_or_default());
        }
    }
    Ok(files)
}
