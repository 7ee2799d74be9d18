//! Bodies on their way through: nothing is collected, each frame is passed on when it is asked for.

mod download;
mod held;
mod upload;

pub(crate) use download::Download;
pub(crate) use held::Held;
pub(crate) use upload::{Progress, Upload};

use http_body_util::Either;
use portcullis::call::ReplayBody;

/// A request's body as it goes to an upstream: the client's own, or what is kept of it.
pub(crate) type Sent = Either<Upload, ReplayBody<Upload>>;
