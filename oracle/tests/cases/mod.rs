//! Cases that meet each other: few keys, clocks that stop at deadlines, seldom a hand on the switch.

use arbitrary::{Arbitrary, Unstructured};
use oracle::{Case, Draft, Grip, Op, Patience, Span, Verdict};
use proptest::array::uniform25;
use proptest::prelude::*;

/// Operations of one case, at most.
const MOST: usize = 400;

fn draft() -> impl Strategy<Value = Draft> {
    // As long as a draft, so that every byte shrinks by itself.
    uniform25(any::<u8>()).prop_map(|bytes| Draft::arbitrary(&mut Unstructured::new(&bytes)).unwrap_or_default())
}

fn key() -> impl Strategy<Value = u8> {
    prop_oneof![14 => 0..3_u8, 3 => 192..=255_u8]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![5 => Just(Verdict::Success), 5 => Just(Verdict::Failure), 1 => Just(Verdict::Ignored)]
}

fn grip() -> impl Strategy<Value = Grip> {
    prop_oneof![4 => Just(Grip::Borrowed), 1 => Just(Grip::Owned), 1 => Just(Grip::Async), 1 => Just(Grip::Handle)]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        2 => (0..3_000_000_u32).prop_map(Span::Nanos),
        4 => (0..1_500_u16).prop_map(Span::Millis),
        2 => (0..4_000_u16).prop_map(Span::Seconds),
        1 => (0..500_u16).prop_map(Span::Days),
        6 => key().prop_map(Span::Until),
        2 => key().prop_map(Span::Before),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    // Mostly the latest permits and the first: old ones are stale.
    let which = || prop_oneof![2 => Just(0_u8), 3 => any::<u8>()];
    prop_oneof![
        100 => (key(), grip()).prop_map(|(key, grip)| Op::Admit { key, grip }),
        30 => (key(), grip(), any::<bool>())
            .prop_map(|(key, grip, is_sheddable)| Op::AdmitBelow { key, grip, is_sheddable }),
        70 => (which(), verdict()).prop_map(|(permit, verdict)| Op::Settle { permit, verdict }),
        6 => (which(), any::<u8>()).prop_map(|(permit, seconds)| Op::ComeBack { permit, seconds }),
        10 => which().prop_map(|permit| Op::Drop { permit }),
        1 => which().prop_map(|permit| Op::Forget { permit }),
        6 => which().prop_map(|permit| Op::Panic { permit }),
        6 => which().prop_map(|permit| Op::Touch { permit }),
        8 => (which(), verdict()).prop_map(|(permit, verdict)| Op::Record { permit, verdict }),
        8 => which().prop_map(|held| Op::Unhold { held }),
        1 => which().prop_map(|held| Op::ForgetHeld { held }),
        50 => span().prop_map(|span| Op::Advance { span }),
        12 => span().prop_map(|span| Op::Leap { span }),
        6 => (key(), 0..4_u8).prop_map(|(key, policy)| Op::SetPolicy { key, policy }),
        3 => (key(), any::<u8>()).prop_map(|(key, limit)| Op::SetLimit { key, limit }),
        2 => key().prop_map(|key| Op::ForceOpen { key }),
        2 => key().prop_map(|key| Op::Disable { key }),
        5 => key().prop_map(|key| Op::Release { key }),
        4 => key().prop_map(|key| Op::Resolve { key }),
        4 => which().prop_map(|handle| Op::Unresolve { handle }),
        8 => Just(Op::Sweep),
        2 => Just(Op::Snapshots),
    ]
}

fn patience() -> impl Strategy<Value = Patience> {
    prop_oneof![Just(Patience::None), Just(Patience::Second), Just(Patience::Minute), Just(Patience::Hour)]
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let drafts = [draft(), draft(), draft(), draft()];
    (drafts, any::<u8>(), patience(), patience(), prop::collection::vec(op(), 1..MOST))
        .prop_map(|(drafts, targets, idle, forget, ops)| Case { drafts, targets, idle, forget, ops })
}
