//! The configuration: a file of listeners, routes and targets, checked as a whole before anything starts.
//!
//! ```
//! let config: portcullis_gateway::Config = r#"
//!     listen = "127.0.0.1:8080"
//!     [defaults]
//!     timeout = "1s"
//!     [[route]]
//!     path = "/core/"
//!     target = "core-banking"
//!     [target.core-banking]
//!     upstream = ["http://127.0.0.1:8110"]
//!     max_in_flight = 3
//! "#.parse()?;
//! assert_eq!(config.targets[0].policy.max_in_flight(), 3);
//! # Ok::<(), portcullis_gateway::ConfigErrors>(())
//! ```

mod call;
mod notes;
mod otlp;
mod print;
mod routes;
mod targets;
mod webhooks;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use http::uri::Authority;
use portcullis::call::CallPolicy;
use portcullis::{Policy, Priority};
use toml::de::DeTable;

pub use otlp::Otlp;
use portcullis_numbers::policies::reader::{Field, Report, fields};
pub use portcullis_numbers::policies::{ConfigError, ConfigErrors};
use portcullis_numbers::policies::{TOP, read_toml};
pub(crate) use print::over_others;
pub use webhooks::Webhook;

use crate::hidden::Hidden;

/// A checked configuration. Its token isn't shown by `Debug`.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Where requests come in.
    pub listen: SocketAddr,
    /// Where the operator looks and acts; none if switched off.
    pub admin: Option<SocketAddr>,
    /// The bearer token of the admin listener: for changes; not on loopback, or by another name than `localhost`, for reading as well.
    pub admin_token: Option<String>,
    /// The most requests that the whole process works on at once.
    pub max_concurrent: u32,
    /// How many targets have series of their own in the metrics; all others are summed up.
    pub metrics_targets: usize,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long a client may take nothing of an answer that is there.
    pub write_timeout: Duration,
    /// How long requests may go on after the signal to stop.
    pub shutdown_timeout: Duration,
    /// What an OpenTelemetry collector is told; nothing if none.
    pub otlp: Option<Otlp>,
    /// Who is told of transitions, in the order of the file.
    pub webhooks: Vec<Webhook>,
    /// The routes, in the order of the file.
    pub routes: Vec<Route>,
    /// The targets, in the order of the file.
    pub targets: Vec<Target>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that no field is forgotten.
        let Self {
            listen,
            admin,
            admin_token,
            max_concurrent,
            metrics_targets,
            header_timeout,
            write_timeout,
            shutdown_timeout,
            otlp,
            webhooks,
            routes,
            targets,
        } = self;
        f.debug_struct("Config")
            .field("listen", listen)
            .field("admin", admin)
            .field("admin_token", &Hidden::of(admin_token.as_deref()))
            .field("max_concurrent", max_concurrent)
            .field("metrics_targets", metrics_targets)
            .field("header_timeout", header_timeout)
            .field("write_timeout", write_timeout)
            .field("shutdown_timeout", shutdown_timeout)
            .field("otlp", otlp)
            .field("webhooks", webhooks)
            .field("routes", routes)
            .field("targets", targets)
            .finish()
    }
}

/// Which requests go to which target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The host that is asked for, in lower case and without a port; any if none.
    pub host: Option<String>,
    /// What the path must begin with. The longest match wins; the path is forwarded as it came.
    pub path: String,
    /// The target's name.
    pub target: String,
    /// Whether answers stay open for as long as they like, such as long polls.
    pub stream: bool,
    /// Whether the target's policy is asked. If not, its calls are neither refused nor counted; timeouts and `max_concurrent` hold.
    pub admission: bool,
    /// How much its requests matter. Critical ones may wait for a place at the target, if its policy lets them.
    pub priority: Priority,
    /// Whether a request may say that it matters less.
    pub priority_header: bool,
}

/// A target: where it is, how long it may take, and its policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The name in routes, snapshots and answers.
    pub name: String,
    /// Where it is reached; taken in turn.
    pub upstream: Vec<Authority>,
    /// The longest wait for the connection; within the timeout in any case.
    pub connect_timeout: Option<Duration>,
    /// The longest wait for the connection and the head of the answer, and then between two pieces of its body: of each attempt.
    pub timeout: Duration,
    /// Whether answers stay open for as long as they like.
    pub stream: bool,
    /// When calls to it are admitted.
    pub policy: Policy,
    /// Candidates for that policy by name, which are told of its calls and decide none.
    pub shadows: Vec<(String, Policy)>,
    /// What a whole call is: its deadline, attempts and fallback. A deadline that is set bounds the answer's body, too, unless that is a stream.
    pub call: CallPolicy,
}

impl Target {
    /// The deadline, if one is set.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        call::deadline(&self.call)
    }

    /// Whether a call is more than one attempt within its timeout.
    pub(crate) fn is_whole(&self) -> bool {
        call::is_whole(&self.call)
    }
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, or that it can't be read.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigErrors::whole(format!("{} can't be read: {error}", path.display())))?;
        text.parse()
    }

    /// Reads the secrets of webhooks from the variables that the file names.
    ///
    /// # Errors
    ///
    /// One isn't set, or to what is no secret.
    pub fn take_secrets(&mut self) -> Result<(), ConfigErrors> {
        self.webhooks.iter_mut().try_for_each(Webhook::take_secret)
    }

    /// Whether the admin listener can be reached from other machines.
    #[must_use]
    pub fn admin_is_public(&self) -> bool {
        self.admin.is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl FromStr for Config {
    type Err = ConfigErrors;

    fn from_str(text: &str) -> Result<Self, ConfigErrors> {
        read_toml(text, read)
    }
}

/// Reads what can be read; complete only if nothing was reported.
fn read(root: &DeTable<'_>, report: &mut Report<'_>) -> Config {
    let hour = Duration::from_hours(1);
    let tick = Duration::from_millis(1);
    let get = fields(report, root, "", TOP);
    let local = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let admin = get("admin");
    let admin = match &admin {
        Some(field) if field.value.as_str() == Some("off") => None,
        Some(field) => field.address(report),
        None => Some(local(9090)),
    };
    let targets = targets::read(report, get("target"), get("defaults"));
    let config = Config {
        listen: get("listen").and_then(|field| field.address(report)).unwrap_or(local(8080)),
        admin,
        admin_token: get("admin_token").and_then(|field| token(report, &field)),
        max_concurrent: get("max_concurrent").and_then(|field| field.whole(report, 1..=1_000_000)).unwrap_or(512),
        metrics_targets: get("metrics_targets").and_then(|field| field.whole(report, 0..=10_000)).unwrap_or(1_000)
            as usize,
        header_timeout: get("header_timeout")
            .and_then(|field| field.duration(report, tick..=hour))
            .unwrap_or(Duration::from_secs(10)),
        write_timeout: get("write_timeout")
            .and_then(|field| field.duration(report, tick..=hour))
            .unwrap_or(Duration::from_secs(60)),
        shutdown_timeout: get("shutdown_timeout")
            .and_then(|field| field.duration(report, tick..=hour))
            .unwrap_or(Duration::from_secs(10)),
        otlp: get("otlp").and_then(|field| otlp::read(report, &field)),
        webhooks: webhooks::read(report, get("webhook"), get("target")),
        routes: routes::read(report, get("route"), get("target")),
        targets,
    };
    if config.listen.port() != 0
        && config.admin == Some(config.listen)
        && let Some(field) = get("admin").or_else(|| get("listen"))
    {
        field.refuse(report, "another address than the proxy's own listener");
    }
    config
}

fn token(report: &mut Report<'_>, field: &Field<'_>) -> Option<String> {
    const ALLOWED: &str = "16 to 256 visible ASCII characters";
    let token = field.text(report, ALLOWED)?;
    if (16..=256).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(token.to_owned());
    }
    // Never shown: errors end up in logs.
    report.add(&field.span, field.name.clone(), format!("the token is out of range: must be {ALLOWED}"));
    None
}
