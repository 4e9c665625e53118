//! Tests that put-if-absent has exactly one winner, no matter how many clients try at the same time.

use futures::future::join_all;
use object_store::path::Path;
use object_store::{Error, ObjectStore, PutMode};

use crate::client::{BUCKET, client, run, server};

const RACERS: usize = 16;
const ROUNDS: usize = 200;

#[test]
fn one_racer_wins_each_round() {
    let server = server();
    let client = client(&server);
    let (client, key_of) = (&client, |round: usize| Path::from(format!("{round:020}.json")));
    run(async {
        for round in 0..ROUNDS {
            let key = key_of(round);
            let race = (0..RACERS).map(|racer| {
                let key = &key;
                async move { client.put_opts(key, format!("{racer}").into(), PutMode::Create.into()).await }
            });
            let outcomes = join_all(race).await;
            let winners: Vec<_> = (0..RACERS).filter(|racer| outcomes[*racer].is_ok()).collect();
            assert_eq!(winners.len(), 1, "round {round}: {winners:?}");
            let content = server.get_object(BUCKET, key.as_ref()).unwrap();
            assert_eq!(content, winners[0].to_string(), "round {round}");
            let lost =
                |outcome: &Result<_, Error>| matches!(outcome, Ok(_) | Err(Error::AlreadyExists { .. }));
            assert!(outcomes.iter().all(lost), "round {round}: {outcomes:?}");
        }
    });
    assert_eq!(server.requests().len(), RACERS * ROUNDS);
}
