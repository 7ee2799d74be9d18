//! Policy files: the `[defaults]` and `[target.NAME]` tables of a gateway's configuration, with or without the rest of it.
//!
//! A gateway's `portcullis.toml` is such a file as it stands. What only says where requests come from and go to, such as `listen`, `route` and
//! `upstream`, is passed over; a key that neither knows is an error.
//!
//! ```
//! use portcullis_numbers::policies::Policies;
//! let policies: Policies = r#"
//!     [defaults]
//!     timeout = "1s"
//!     [target.rates]
//!     failure_rate = 0.3
//! "#.parse()?;
//! assert!(policies.has("rates"));
//! assert_eq!(policies.of("rates").unwrap().timeout, policies.of("claims").unwrap().timeout);
//! # Ok::<(), portcullis_numbers::policies::ConfigErrors>(())
//! ```

pub mod call;
mod error;
mod policy;
pub mod reader;
mod shadow;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use portcullis::Policy;
use portcullis::call::CallPolicy;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use error::{ConfigError, ConfigErrors};
use reader::{Field, Report, fields, join};
pub use shadow::read_shadows;

/// The keys at the top of a gateway's configuration.
pub const TOP: &[&str] = &[
    "listen",
    "admin",
    "admin_token",
    "max_concurrent",
    "metrics_targets",
    "header_timeout",
    "write_timeout",
    "shutdown_timeout",
    "otlp",
    "webhook",
    "defaults",
    "route",
    "target",
];

/// What the gateway itself reads from a target's table; the rest is its policy, and that of its calls.
pub(crate) const OWN: &[&str] = &["upstream", "connect_timeout", "timeout", "stream", "shadow"];

/// How long an attempt may take.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(1);

/// What is in force for a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// When calls to it are admitted.
    pub policy: Policy,
    /// What a whole call is: its deadline, attempts and fallback.
    pub call: CallPolicy,
    /// How long an attempt may take, if the file says so; none for a stream, whose timeout is about silence only.
    pub timeout: Option<Duration>,
}

/// A policy file: what is in force for each target.
#[derive(Clone, Debug, PartialEq)]
pub struct Policies {
    defaults: Option<Terms>,
    targets: BTreeMap<String, Terms>,
}

impl Policies {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, or that it can't be read.
    pub fn load(path: &Path) -> Result<Self, Refused> {
        let refused = |errors| Refused { path: path.to_owned(), errors };
        let text = std::fs::read_to_string(path)
            .map_err(|error| refused(ConfigErrors::whole(format!("can't be read: {error}"))))?;
        text.parse().map_err(refused)
    }

    /// What is in force for a target: its own table's, or else the defaults'; none if those work only with what each target adds.
    #[must_use]
    pub fn of(&self, target: &str) -> Option<&Terms> {
        self.targets.get(target).or(self.defaults.as_ref())
    }

    /// Whether a target has a table of its own.
    #[must_use]
    pub fn has(&self, target: &str) -> bool {
        self.targets.contains_key(target)
    }

    /// All that the file says, the defaults first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Terms> {
        self.defaults.iter().chain(self.targets.values())
    }

    /// The targets that have a table of their own, by name.
    pub fn targets(&self) -> impl Iterator<Item = (&str, &Terms)> {
        self.targets.iter().map(|(name, terms)| (name.as_str(), terms))
    }
}

impl FromStr for Policies {
    type Err = ConfigErrors;

    fn from_str(text: &str) -> Result<Self, ConfigErrors> {
        read_toml(text, read).map(|(defaults, targets)| Self { defaults, targets })
    }
}

/// Whether the gateway takes it as a target's name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 200 && !name.chars().any(char::is_control)
}

/// A policy file that can't be used, with all that is wrong with it; shown as a line for each error, with the file in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    path: PathBuf,
    errors: ConfigErrors,
}

impl Refused {
    /// What is wrong.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        self.errors.errors()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.errors().iter().enumerate() {
            let end = if n > 0 { "\n" } else { "" };
            write!(f, "{end}{}: {error}", self.path.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// Reads a file with `read`, whose value counts only if nothing was reported.
///
/// # Errors
///
/// All that was reported, or that the file is no TOML.
pub fn read_toml<T>(text: &str, read: impl FnOnce(&DeTable<'_>, &mut Report<'_>) -> T) -> Result<T, ConfigErrors> {
    let (root, broken) = DeTable::parse_recoverable(text);
    let mut report = Report::new(text);
    for error in broken {
        report.add(&error.span().unwrap_or(0..0), "", error.message().trim_end());
    }
    if !report.errors.is_empty() {
        // What was recovered from a broken file would only lead to errors about errors.
        return Err(ConfigErrors::new(report.errors));
    }
    let value = read(root.get_ref(), &mut report);
    if report.errors.is_empty() { Ok(value) } else { Err(ConfigErrors::new(report.errors)) }
}

/// Reads a target's policy, and that of its calls, from its own fields and the defaults; none if something was reported.
pub fn read_terms(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'_>,
    defaults: &DeTable<'_>,
    timeout: Duration,
) -> Option<(Policy, CallPolicy)> {
    let policy = policy::read(report, target, own, (defaults, "defaults"), timeout);
    let call = call::read(report, target, own, defaults, timeout);
    let (policy, call) = (policy?, call?);
    if let Err(error) = call.check_with(&policy) {
        call::refuse_sum(report, target, own, defaults, &error);
    }
    Some((policy, call))
}

/// Reports the fields of a table that are unknown or can't be read, but for those that are the gateway's own.
pub fn check_fields(report: &mut Report<'_>, path: &str, table: &DeTable<'_>) {
    policy::check_keys(report, path, table);
    call::check_keys(report, path, table);
}

/// What a timeout is that nobody set.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);

fn read(root: &DeTable<'_>, report: &mut Report<'_>) -> (Option<Terms>, BTreeMap<String, Terms>) {
    let get = fields(report, root, "", TOP);
    let (empty, none) = (DeTable::new(), Spanned::new(0..0, DeValue::Table(DeTable::new())));
    let whole = get("defaults").unwrap_or(Field::new("defaults".to_owned(), &none));
    let defaults = whole.table(report).unwrap_or(&empty);
    check_fields(report, "defaults", defaults);
    timeouts(report, "defaults", defaults);
    let (told, shared) = (report.errors.len(), one(report, &whole, defaults, &empty));
    let targets = get("target").and_then(|field| field.table(report)).unwrap_or(&empty);
    if !targets.is_empty() {
        // Defaults that lack what each target adds, such as a limit to ramp to, are no error.
        report.errors.truncate(told);
    }
    let mut read = BTreeMap::new();
    for (key, value) in targets {
        let field = Field::new(join("target", key.get_ref()), value);
        let Some(own) = field.table(report) else { continue };
        if let Some(terms) = one(report, &field, own, defaults) {
            read.insert(key.get_ref().clone().into_owned(), terms);
        }
    }
    (shared, read)
}

/// The timeout, and whether it is a stream's.
fn timeouts(report: &mut Report<'_>, path: &str, table: &DeTable<'_>) -> (Option<Duration>, Option<bool>) {
    let get = |key: &str| table.get(key).map(|value| Field::new(join(path, key), value));
    let timeout = get("timeout").and_then(|field| field.duration(report, TIMEOUT));
    (timeout, get("stream").and_then(|field| field.flag(report)))
}

/// What is in force for one target by its own table and the defaults.
pub(crate) fn one(
    report: &mut Report<'_>,
    whole: &Field<'_>,
    own: &DeTable<'_>,
    defaults: &DeTable<'_>,
) -> Option<Terms> {
    // A default that is out of range is reported where it stands.
    let mut unheard = Report::new("");
    let (timeout, stream) = timeouts(report, &whole.name, own);
    let (inherited, streams) = timeouts(&mut unheard, "defaults", defaults);
    let (timeout, stream) = (timeout.or(inherited), stream.or(streams));
    let (policy, call) = read_terms(report, whole, own, defaults, timeout.unwrap_or(DEFAULT_TIMEOUT))?;
    Some(Terms { policy, call, timeout: timeout.filter(|_| stream != Some(true)) })
}
