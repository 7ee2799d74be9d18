//! Bodies on their way through: nothing is collected, each frame is passed on when it is asked for.

mod download;
mod held;
mod upload;

pub(crate) use download::Download;
pub(crate) use held::Held;
pub(crate) use upload::{Progress, Upload};
