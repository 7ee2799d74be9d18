//! portcullis beside its peers: one small trait, a file per subject, and the reports that run on all of them.
//!
//! | for | see |
//! | --- | --- |
//! | what a subject must offer, and say that it can't do | [`subject`] |
//! | the subjects | [`peers`] |
//! | calls of subjects that only wrap futures, held open | [`held`] |
//! | the scenarios of `--bin faults` | [`faults`] |
//! | their table and JSON | [`report`] |
//! | the timings of `--bin cores`, with table, plot and gate | [`cores`] |

pub mod alloc;
pub mod bounded;
pub mod cores;
pub mod faults;
pub mod held;
pub mod peers;
pub mod report;
pub mod subject;
