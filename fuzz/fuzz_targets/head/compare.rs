//! What the client asked, what was answered and what arrived, side by side.

use super::answers::Answer;
use super::strict::{self, Framing, Refusal, Request};
use super::upstream::Seen;

/// Fields that the gateway writes itself, so that a client can't name them away.
const OWN: [&str; 7] =
    ["host", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "content-length", "transfer-encoding"];

/// What a client sent, as a strict reader takes it.
#[derive(Debug)]
pub struct Asked {
    requests: Vec<Request>,
    /// Whether what follows may be taken for more requests.
    is_open: bool,
}

impl Asked {
    pub fn new(sent: &[u8]) -> Self {
        let (requests, refusal) = strict::requests(sent);
        Self { requests, is_open: matches!(refusal, Some(Refusal::Loose(_))) }
    }

    /// Whether answers are still to come.
    pub fn waits(&self, answers: &[Answer], seen: &[Seen]) -> bool {
        let answered = seen.iter().filter(|seen| seen.answered).count();
        answered > passed_on(answers) || !self.is_open && self.goes_on(answers) && answers.len() < self.requests.len()
    }

    /// Whether nothing has given the gateway a reason to close: the client's word, a body that wasn't asked for, a head that hyper refused.
    fn goes_on(&self, answers: &[Answer]) -> bool {
        self.requests.iter().zip(answers).all(|(request, answer)| {
            let is_heard = answer.status == 200 && !origin(&request.head.target).starts_with("/core/early/");
            let is_whole = is_heard || request.head.framing == Framing::Length(0);
            is_whole && matches!(answer.status, 200 | 404 | 501) && !request.head.is_last()
        })
    }

    /// Checks that each request that was passed on is one that was asked.
    ///
    /// # Panics
    ///
    /// If one isn't, or if there are more requests or answers than were asked for.
    pub fn check(&self, answers: &[Answer], seen: &[Seen]) {
        let mut arrived = seen.iter();
        for (request, answer) in self.requests.iter().zip(answers) {
            if answer.status == 200 {
                let seen = arrived.next().expect("an answer of an upstream that was asked");
                assert!(is_same(request, seen), "{request:#?} became {seen:#?}");
            }
        }
        // The last one may lack its end, or its answer.
        assert!(seen.len() <= passed_on(answers) + 1, "{answers:?} to {seen:#?}");
        assert!(self.is_open || arrived.all(|seen| seen.body.is_none()), "{self:#?} became {seen:#?}");
        let last = self.requests.iter().position(|request| request.head.is_last()).map(|last| last + 1);
        let most = last.or((!self.is_open).then_some(self.requests.len() + 1));
        assert!(most.is_none_or(|most| answers.len() <= most), "{answers:?} to {self:#?}");
    }
}

/// How many an upstream has had a part in: it answered, or the client broke off.
fn passed_on(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| matches!(answer.status, 200 | 408)).count()
}

fn is_same(asked: &Request, seen: &Seen) -> bool {
    let (from, to) = (&asked.head, &seen.head);
    let named_away = from.connection().into_iter().filter(|name| !OWN.contains(&name.as_str()));
    from.fault.is_none()
        && from.method == to.method
        && origin(&from.target) == to.target
        && seen.body.as_ref().is_none_or(|body| body.text == asked.body.text)
        && named_away.into_iter().all(|name| to.all(&name).next().is_none())
}

/// The path and query of a target.
fn origin(target: &str) -> String {
    let Some((_, rest)) = target.split_once("://").filter(|_| !target.starts_with('/')) else {
        return target.to_owned();
    };
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => rest[at..].to_owned(),
        Some(at) => format!("/{}", &rest[at..]),
        None => "/".to_owned(),
    }
}
