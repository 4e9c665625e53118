//! Rules that make requests fail or slow them down.

use serde::{Deserialize, Serialize};

use super::answers::ErrorAnswer;
use super::requests::{Kind, Request};
use crate::random::Random;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The connection is closed, and the request has no effect.
    CloseBefore,
    /// The connection is closed after the request has taken effect, so the response is lost.
    CloseAfter,
    /// The request has no effect and gets no response, and the connection stays open.
    SilenceBefore,
    /// The request takes effect but gets no response, and the connection stays open.
    SilenceAfter,
    /// The connection is closed in the middle of the response's body.
    CutBody,
    /// The response is an error.
    Error(ErrorAnswer),
    /// The request waits this number of milliseconds before it takes effect, even if its client gives up earlier.
    LatencyMs(u64),
    /// The bodies of the request and of the response are transferred at this speed.
    BytesPerSecond(u64),
}

/// To which of the matching requests a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// To all of them.
    #[default]
    Always,
    /// To the first n of them.
    First(u64),
    /// Only to the n-th of them, counted from 1.
    Nth(u64),
    /// To every k-th of them.
    Every(u64),
    /// To each of them with a certain probability.
    Chance {
        /// The probability in 1/1000.
        per_mille: u64,
        /// The seed of the random numbers.
        seed: u64,
    },
}

/// A fault, and the requests that it affects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The effect.
    pub fault: Fault,
    /// The kinds of requests; empty for all kinds.
    #[serde(default)]
    pub kinds: Vec<Kind>,
    /// A text that the key, or the prefix of a listing, must contain.
    #[serde(default)]
    pub key: String,
    /// To which of the matching requests the rule applies.
    #[serde(default)]
    pub when: When,
}

impl Rule {
    /// Creates a rule that applies to all requests.
    pub fn new(fault: Fault) -> Self {
        Self { fault, kinds: Vec::new(), key: String::new(), when: When::Always }
    }

    /// Restricts the rule to requests of this kind. After several calls, the rule applies to requests of any of these
    /// kinds.
    #[must_use]
    pub fn on(mut self, kind: Kind) -> Self {
        self.kinds.push(kind);
        self
    }

    /// Restricts the rule to requests whose key contains `part`.
    #[must_use]
    pub fn key(mut self, part: &str) -> Self {
        self.key = part.to_owned();
        self
    }

    /// Restricts the rule to some of the matching requests.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    fn matches(&self, request: &Request) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&request.kind)) && request.key.contains(&self.key)
    }
}

/// What happens to one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) latency_ms: u64,
    pub(super) bytes_per_second: Option<u64>,
    pub(super) fault: Option<Fault>,
    /// The indexes of all rules that apply to the request.
    pub(super) rules: Vec<usize>,
}

#[derive(Debug)]
struct Active {
    rule: Rule,
    matched: u64,
    random: Random,
}

/// The rules, and how many requests each has matched.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<Active>);

impl Rules {
    pub(super) fn new(rules: Vec<Rule>) -> Self {
        let active = |rule: Rule| {
            let seed = if let When::Chance { seed, .. } = rule.when { seed } else { 0 };
            Active { rule, matched: 0, random: Random::new(seed) }
        };
        Self(rules.into_iter().map(active).collect())
    }

    /// Decides what happens to `request`. Latencies add up, and the lowest speed applies. Of all other faults, only the
    /// first one applies, and later rules with such faults do not count the request.
    pub(super) fn plan(&mut self, request: &Request) -> Plan {
        let mut plan = Plan::default();
        for (number, active) in self.0.iter_mut().enumerate() {
            let is_failure = !matches!(active.rule.fault, Fault::LatencyMs(_) | Fault::BytesPerSecond(_));
            if (is_failure && plan.fault.is_some()) || !active.rule.matches(request) || !active.applies() {
                continue;
            }
            plan.rules.push(number);
            match &active.rule.fault {
                Fault::LatencyMs(more) => plan.latency_ms += more,
                Fault::BytesPerSecond(speed) => {
                    plan.bytes_per_second =
                        Some(plan.bytes_per_second.map_or(*speed, |other| other.min(*speed)));
                }
                fault => plan.fault = Some(fault.clone()),
            }
        }
        plan
    }
}

impl Active {
    /// Counts a matching request; returns whether the rule applies to it.
    fn applies(&mut self) -> bool {
        self.matched += 1;
        match self.rule.when {
            When::Always => true,
            When::First(count) => self.matched <= count,
            When::Nth(number) => self.matched == number,
            When::Every(step) => self.matched.is_multiple_of(step.max(1)),
            When::Chance { per_mille, .. } => self.random.chance(per_mille),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            number: 1,
            kind: Kind::Put,
            bucket: "tables".to_owned(),
            key: "t/a".to_owned(),
            query: String::new(),
            range: None,
            bytes_in: 0,
            bytes_out: 0,
            status: None,
            rules: Vec::new(),
        }
    }

    /// Returns the numbers of the requests to which a rule applies, among the first ten that match it.
    fn applied(when: When) -> Vec<usize> {
        let mut rules = Rules::new(vec![Rule::new(Fault::CloseBefore).when(when)]);
        (1..=10).filter(|_| rules.plan(&request()).fault.is_some()).collect()
    }

    #[test]
    fn a_rule_applies_as_often_as_it_says() {
        assert_eq!(applied(When::Always).len(), 10);
        assert_eq!(applied(When::First(2)), [1, 2]);
        assert_eq!(applied(When::Nth(3)), [3]);
        assert_eq!(applied(When::Every(4)), [4, 8]);
        let chance = |seed| applied(When::Chance { per_mille: 500, seed });
        assert_eq!(chance(1), chance(1));
        assert_ne!(chance(1), chance(2));
        assert!(applied(When::Chance { per_mille: 0, seed: 1 }).is_empty());
    }

    #[test]
    fn rules_add_up_and_the_first_failure_wins() {
        let mut rules = Rules::new(vec![
            Rule::new(Fault::LatencyMs(5)),
            Rule::new(Fault::CloseBefore).when(When::First(1)),
            Rule::new(Fault::CutBody).when(When::First(1)),
            Rule::new(Fault::BytesPerSecond(7)),
            Rule::new(Fault::LatencyMs(6)).on(Kind::Put).key("t/"),
            Rule::new(Fault::LatencyMs(100)).on(Kind::Get),
            Rule::new(Fault::LatencyMs(100)).key("u/"),
        ]);
        let slow = Plan { latency_ms: 11, bytes_per_second: Some(7), ..Plan::default() };
        let first = Plan { fault: Some(Fault::CloseBefore), rules: vec![0, 1, 3, 4], ..slow };
        assert_eq!(rules.plan(&request()), first);
        // The rule with `CutBody` did not count the first request, because the rule with `CloseBefore` applied to it.
        let second = rules.plan(&request());
        assert_eq!((second.fault, second.rules), (Some(Fault::CutBody), vec![0, 2, 3, 4]));
        assert_eq!(rules.plan(&request()).fault, None);
    }

    #[test]
    fn rules_are_written_as_json() {
        let text = r#"[
            {"fault": "close_after", "kinds": ["create"], "key": "_delta_log/", "when": {"first": 3}},
            {
                "fault": {"error": {"code": "SlowDown", "retry_after": 1}},
                "when": {"chance": {"per_mille": 9, "seed": 1}}
            },
            {"fault": {"latency_ms": 20}}
        ]"#;
        let rules: Vec<Rule> = serde_json::from_str(text).unwrap();
        let slow_down = Fault::Error(ErrorAnswer::new("SlowDown").retry_after(1));
        assert_eq!(
            rules,
            [
                Rule::new(Fault::CloseAfter).on(Kind::Create).key("_delta_log/").when(When::First(3)),
                Rule::new(slow_down).when(When::Chance { per_mille: 9, seed: 1 }),
                Rule::new(Fault::LatencyMs(20)),
            ]
        );
        serde_json::from_str::<Rule>(r#"{"fault": "close_after", "kind": "create"}"#).unwrap_err();
    }
}
