use portcullis::{Policy, Rejection, State};

use crate::common::{Bench, T, secs};

#[test]
fn r03_the_textbook_cycle() {
    let bench = Bench::new(Policy::builder().min_calls(5).open_wait(secs(30)).jitter(0.0));
    bench.fail(5);
    assert_eq!(bench.state(), State::Open);
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(30) });
    bench.advance(secs(30));
    let probe = bench.engine.admit(T).unwrap();
    assert!(probe.is_probe());
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
    probe.success();
    bench.succeed(2);
    assert_eq!(bench.state(), State::Closed);
    use State::{Closed, HalfOpen, Open};
    assert_eq!(bench.path(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}
