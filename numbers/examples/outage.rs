//! Prints the log that ships, packed, as `numbers/replay/outage.csv.gz`: ten minutes of calls to three targets, made by a fixed rule.
//!
//! core-banking fails nine calls of ten from minute 3 to 5, each after half a second; rates always fails one of twelve; claims is slow in minute 7.

fn main() {
    println!("time,target,latency_ms,status");
    let mut chance = 1;
    for tick in 0..12_000_u64 {
        let ms = tick * 50;
        let target = ["core-banking", "claims", "core-banking", "rates"][(tick % 4) as usize];
        let is_down = target == "core-banking" && (180_000..300_000).contains(&ms);
        let is_slow = target == "claims" && (420_000..480_000).contains(&ms);
        let one_in = match target {
            "rates" => 12,
            _ => 200,
        };
        let failed = is_down != draw(&mut chance).is_multiple_of(if is_down { 10 } else { one_in });
        let latency = match (is_down, is_slow) {
            (true, _) => 500,
            (_, true) => 1_500,
            _ => 20 + draw(&mut chance) % 60,
        };
        let at = ms + draw(&mut chance) % 50;
        println!(
            "{}.{:03},{target},{latency},{}",
            1_700_000_000 + at / 1_000,
            at % 1_000,
            if failed { 503 } else { 200 }
        );
    }
}

/// A number by chance, the same in every run: the 64-bit linear congruential generator of D. Knuth's MMIX, its upper half.
fn draw(chance: &mut u64) -> u64 {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *chance >> 33
}
