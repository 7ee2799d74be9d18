//! Any operations on the engine are answered as the naive engine answers them, and leave what it has.
#![no_main]

use libfuzzer_sys::fuzz_target;
use oracle::{Case, check};

fuzz_target!(|case: Case| {
    check(&case);
});
