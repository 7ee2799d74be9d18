//! The checker has teeth: each broken twin is caught.

use linearizability::campaign;
use linearizability::shape::SHAPES;
use linearizability::twins::TWINS;

/// Of one shape in the default run.
const HISTORIES: usize = 2_000;

#[test]
fn each_broken_twin_is_caught() {
    for twin in TWINS {
        let shape = SHAPES.iter().find(|shape| shape.name == twin.shape);
        let shape = shape.unwrap_or_else(|| panic!("{}: no shape {}", twin.name, twin.shape));
        let tally = campaign::run(shape, twin.make, HISTORIES, 1);
        assert!(tally.rejected.is_some(), "not caught: {}", twin.name);
    }
}
