//! What callers get instead of a failure, and how it is told from the real thing.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// An error of any kind.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What callers of a target get instead of a failure: declared by the nature of the target.
///
/// Fail closed where a wrong answer does harm (payments, permissions): [`Refuse`](Self::Refuse). Fail open where an old or a plain answer is
/// better than none. A call whose deadline had passed on arrival is refused whatever is declared: nobody waits for an answer, and nothing was
/// asked of the target. The HTTP layer and the gateway go by this; typed calls bring their own, see [`Backup`](super::Backup).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fallback {
    /// The failure itself.
    #[default]
    Refuse,
    /// This answer.
    Value(FallbackValue),
    /// What a function of the layer's answers.
    Function,
    /// The last good answer to the same request, if it is no older than this.
    Stale {
        /// The greatest age.
        max_age: Duration,
    },
}

/// An answer that is always the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
pub struct FallbackValue {
    /// The status, 200 to 599.
    pub status: u16,
    /// The media type.
    pub content_type: String,
    /// The body.
    pub body: String,
}

impl Default for FallbackValue {
    fn default() -> Self {
        Self { status: 200, content_type: "text/plain".to_owned(), body: String::new() }
    }
}

/// Which fallback answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FallbackKind {
    /// A value.
    Value,
    /// A function.
    Function,
    /// The last good answer, so old.
    Stale {
        /// Its age.
        age: Duration,
    },
}

impl FallbackKind {
    /// The word for it in headers and counters.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Function => "function",
            Self::Stale { .. } => "stale",
        }
    }
}

impl fmt::Display for FallbackKind {
    /// As in the header [`FALLBACK_HEADER`](super::FALLBACK_HEADER): `stale; age=12`, in whole seconds rounded up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match self {
            Self::Stale { age } => write!(f, "; age={}", age.as_nanos().div_ceil(1_000_000_000)),
            Self::Value | Self::Function => Ok(()),
        }
    }
}

/// Why a fallback had no answer, where it was no function of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoFallback {
    /// No good answer was kept, or it was too old.
    NothingKept,
    /// The policy asks for a function, and there is none.
    NoFunction,
    /// An asynchronous function in a blocking call.
    Asynchronous,
}

impl fmt::Display for NoFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingKept => "no answer is kept that is young enough",
            Self::NoFunction => "the policy asks for a function, and none is given",
            Self::Asynchronous => "a blocking call can't run an asynchronous function",
        })
    }
}

impl Error for NoFallback {}
