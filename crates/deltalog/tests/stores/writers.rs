//! Several writers append to one table at the same time.

use std::collections::BTreeSet;

use crate::places::Place;
use crate::rows::{append, ids, newest};

on_every_store! { every_append_is_committed_once }

const WRITERS: i64 = 16;
const APPENDS: i64 = 4;

/// Each writer has its own connections, as if it were a separate process.
pub fn every_append_is_committed_once(place: &Place) {
    append(&place.open("t"), [0]);
    let versions: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let storage = place.open("t");
                    let id = |number| 1 + writer * APPENDS + number;
                    (0..APPENDS).map(|number| append(&storage, [id(number)]).version).collect()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(versions.iter().all(|own| own.is_sorted()), "{versions:?}");
    let versions: BTreeSet<u64> = versions.into_iter().flatten().collect();
    assert!(versions.into_iter().eq(1..=(WRITERS * APPENDS) as u64));
    assert_eq!(ids(&newest(&place.open("t"))), (0..=WRITERS * APPENDS).collect::<Vec<_>>());
}
