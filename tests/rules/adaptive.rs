use portcullis::{Adaptive, Policy};
use super::adaptive_sim::{Service, World, bench};
use crate::common::{ms, secs};

#[test]
fn explore() {
    for workers in [20, 40, 100] {
        for kind in [Service::Exponential] {
            for law in ["gradient"] {
                for seed in 1..=10 {
                    let adaptive = if law == "gradient" { Adaptive::gradient() } else { Adaptive::aimd(ms(24)) };
                    let bench = bench(Policy::builder().max_in_flight(1_000).adaptive(adaptive));
                    let mut world = World::new(&bench, seed, workers);
                    world.kind = kind;
                    let line = |world: &mut World<'_>, n: usize| -> String {
                        (0..n).map(|_| { let (l, x) = world.run(secs(5)); let cap = world.workers as f64 / world.service * 1e9; format!("{:.2}/{:.2} ", l / world.workers as f64, x / cap) }).collect()
                    };
                    let a = line(&mut world, 8);
                    world.workers /= 2;
                    let b = line(&mut world, 6);
                    world.workers *= 2;
                    world.service *= 2.0;
                    let c = line(&mut world, 8);
                    world.service /= 4.0;
                    world.load(0.3);
                    let d = line(&mut world, 4);
                    println!("{workers} {kind:?} {law} {seed}\n   find   {a}\n   halve  {b}\n   slower {c}\n   idle {d} {:?}", world.snapshot().adaptive);
                }
            }
        }
    }
}
