//! One breaker before several targets: the dead one's failures close the door of the healthy one, or drown in its successes.

use portcullis::{Policy, PolicyError, Window};

use super::lab::{Draw, Lab, ms, secs};
use super::{Lesson, Taught};

/// A minute of ten calls a second to each target, of which one is dead, by turns that begin where it is drawn. How many the dead one got,
/// and one of the healthy ones.
fn minute(targets: u32, key: impl Fn(u32) -> String) -> Result<(u32, u32), PolicyError> {
    let half_of_ten = Policy::builder().window(Window::calls(10)).failure_rate(0.5);
    let lab = Lab::new(half_of_ten.open_wait(secs(5)).backoff(1.0).jitter(0.0))?;
    let (mut dead, mut healthy) = (0, 0);
    let mut draw = Draw(1);
    for _ in 0..600 {
        let first = draw.below(targets);
        for turn in 0..targets {
            let target = (first + turn) % targets;
            match (lab.engine.admit(key(target).as_str()), target) {
                (Ok(permit), 0) => {
                    dead += 1;
                    permit.failure();
                }
                (Ok(permit), _) => {
                    healthy += u32::from(target == 1);
                    permit.success();
                }
                (Err(_), _) => {}
            }
        }
        lab.time.increment(ms(100));
    }
    Ok((dead, healthy))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: one key, whoever is called.
    let one = |_| "upstreams".to_owned();
    let ((_, refused_too), (drowned, _)) = (minute(2, one)?, minute(10, one)?);
    // RIGHT: a key for each target. Two or ten make no difference.
    let each = |target| format!("upstream {target}");
    let right = minute(2, each)?;
    assert_eq!(right, minute(10, each)?);

    assert!(refused_too < 600 / 4, "the healthy one of two goes down with the dead one: {refused_too}");
    assert_eq!(drowned, 600, "a tenth of the calls fail, and the breaker never opens");
    assert_eq!(right.1, 600);
    assert!(right.0 < 600 / 20, "{right:?}");
    Ok(Lesson {
        wrong: format!(
            "one for 2 targets: the healthy one got {refused_too} of 600 calls; one for 10: the dead one got {drowned} of 600"
        ),
        right: format!("one each: the healthy one got {} of 600 calls, the dead one {}", right.1, right.0),
    })
}
