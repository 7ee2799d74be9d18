//! A history before the checker.

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History as Actions};

use crate::history::{History, Span};
use crate::spec::{Engine, Step};

/// Whether the steps of a history can be put in an order that the specification allows.
#[must_use]
pub fn is_linearizable(history: &History) -> bool {
    let begin = Step::Begin(history.shape);
    let mut actions = vec![(0, Action::Call(begin.clone())), (0, Action::Response(begin))];
    let spans = history.spans();
    // An invocation that read a count comes after the return that left it, and before the return that counted on from it.
    let mut events: Vec<(u64, usize, bool)> = Vec::new();
    for (index, Span { invoked, returned, .. }) in spans.iter().enumerate() {
        events.extend([(invoked * 2, index, false), (returned * 2 + 1, index, true)]);
    }
    events.sort_unstable();
    for (_, index, is_return) in events {
        let Some(Span { step, .. }) = spans.get(index) else { continue };
        // To the checker each step is a caller of its own: it knows no order among the steps of an act but the specification's.
        let action = if is_return { Action::Response(step.clone()) } else { Action::Call(step.clone()) };
        actions.push((index + 1, action));
    }
    WGLChecker::<Engine>::is_linearizable(Actions::from_actions(actions))
}
