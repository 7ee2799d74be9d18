//! How much a request matters, told to the layer.

use http::Request;
use portcullis::tower::{Error, classify_fn, requested_priority};
use portcullis::{Outcome, Policy, Priority, Rejection};
use tower::{Layer, Service};

use super::support::{Readiness, Rig, Watched, now};
use crate::common::T;

#[test]
fn requests_that_matter_less_stop_at_their_share() {
    let rig = Rig::new(Policy::builder().max_in_flight(4).normal_share(0.75).sheddable_share(0.5));
    let _held = [(); 3].map(|()| rig.engine.admit(T).unwrap());
    let inner = Watched::new(Readiness::Never);
    let plain = rig.layer::<Request<()>, _>(classify_fn(|_: &Result<_, _>| Outcome::Success));
    let told =
        plain.clone().priority(|request: &Request<()>| requested_priority(request.headers(), Priority::Critical));
    let request = |priority| Request::builder().header("x-request-priority", priority).body(()).unwrap();
    for (name, priority) in [("normal", Priority::Normal), ("sheddable", Priority::Sheddable)] {
        let refused = now(told.layer(inner.clone()).call(request(name)));
        assert_eq!(refused.unwrap_err(), Error::Rejected(Rejection::Shed { priority }));
    }
    assert_eq!((rig.snapshot().refusals.shed, inner.uses()), (2, (0, 0)));
    // Unless it is told, the layer takes all for critical.
    let passing = plain.layer(inner.clone()).call(request("sheddable"));
    assert_eq!(rig.snapshot().in_flight, 4);
    drop(passing);
    let passing = told.layer(inner).call(request("critical"));
    assert_eq!(rig.snapshot().in_flight, 4);
    drop(passing);
}
