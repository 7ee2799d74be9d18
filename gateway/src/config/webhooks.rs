//! The `[[webhook]]` tables.

use std::fmt;
use std::time::Duration;

use http::Uri;
use portcullis::State;
use portcullis_numbers::policies::reader::{Field, Report, fields};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ConfigErrors;
use crate::hidden::Hidden;

const KEYS: &[&str] = &["url", "secret", "secret_env", "targets", "states", "at_most", "interval", "timeout"];
const URL: &str = "an http:// URL without user, such as \"http://127.0.0.1:9000/hook\"";
const SECRET: &str = "16 to 256 visible ASCII characters";
const MOST: usize = 16;
/// What is told if the file doesn't say. Probes are told by what comes of them.
const STATES: [State; 4] = [State::Closed, State::Open, State::ForcedOpen, State::Disabled];

/// Who is told of transitions. Neither the secret nor what follows the host, which may be one, is shown by `Debug`.
#[derive(Clone, PartialEq)]
pub struct Webhook {
    /// Where it is posted to.
    pub url: Uri,
    /// What bodies are signed with; they aren't if none.
    pub secret: Option<String>,
    /// The environment variable that has the secret.
    pub secret_env: Option<String>,
    /// The targets that it is told of; all if none.
    pub targets: Option<Vec<String>>,
    /// The states that it is told of when a target comes to them.
    pub states: Vec<State>,
    /// The transitions of a target that are told one by one within the interval; the others are told together at its end.
    pub at_most: u32,
    /// How long they are counted.
    pub interval: Duration,
    /// How long it may take to answer.
    pub timeout: Duration,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, secret, secret_env, targets, states, at_most, interval, timeout } = self;
        f.debug_struct("Webhook")
            .field("host", &url.authority().map(http::uri::Authority::as_str))
            .field("secret", &Hidden::of(secret.as_deref()))
            .field("secret_env", secret_env)
            .field("targets", targets)
            .field("states", states)
            .field("at_most", at_most)
            .field("interval", interval)
            .field("timeout", timeout)
            .finish()
    }
}

impl Webhook {
    /// Reads the secret where the file says that it is.
    pub(super) fn take_secret(&mut self) -> Result<(), ConfigErrors> {
        let Some(name) = &self.secret_env else { return Ok(()) };
        let secret = std::env::var(name).ok().filter(|secret| is_secret(secret));
        if secret.is_none() {
            let message = format!("webhook.secret_env: the variable {name} must be set: to {SECRET}");
            return Err(ConfigErrors::whole(message));
        }
        self.secret = secret;
        Ok(())
    }
}

fn is_secret(text: &str) -> bool {
    (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads the webhooks; `targets` is only looked at for the names in it.
pub(super) fn read(report: &mut Report<'_>, hooks: Option<Field<'_>>, targets: Option<Field<'_>>) -> Vec<Webhook> {
    let Some(hooks) = hooks else { return Vec::new() };
    let Some(list) = hooks.value.as_array().filter(|list| list.len() <= MOST) else {
        hooks.refuse(report, &format!("a list of at most {MOST} tables, each under [[webhook]]"));
        return Vec::new();
    };
    let defined = targets.and_then(|field| field.value.as_table());
    let mut read: Vec<Webhook> = Vec::new();
    for (n, entry) in list.iter().enumerate() {
        let name = format!("webhook[{n}]");
        let Some(hook) = one(report, entry, &name, defined) else { continue };
        if let Some(first) = read.iter().position(|other| other.url == hook.url) {
            report.add(&entry.span(), name, format!("the same url as webhook[{first}]"));
        }
        read.push(hook);
    }
    read
}

fn one<'d>(
    report: &mut Report<'_>,
    entry: &'d Spanned<DeValue<'d>>,
    name: &str,
    defined: Option<&DeTable<'_>>,
) -> Option<Webhook> {
    let table = Field::new(name.to_owned(), entry).table(report)?;
    let get = fields(report, table, name, KEYS);
    if get("url").is_none() {
        report.add(&entry.span(), format!("{name}.url"), format!("missing: must be {URL}"));
    }
    let url = get("url").and_then(|field| url(report, &field));
    let secret = get("secret").and_then(|field| secret(report, &field));
    let secret_env = get("secret_env").and_then(|field| {
        if secret.is_some() {
            field.refuse(report, "left out where there is a secret");
        }
        field.text(report, "the name of an environment variable").map(str::to_owned)
    });
    let targets = get("targets").map(|field| names(report, &field, defined));
    let states = get("states").map_or(STATES.to_vec(), |field| states(report, &field));
    let (second, hour) = (Duration::from_secs(1), Duration::from_hours(1));
    let mut within = |key, least, default| get(key).map_or(Some(default), |field| field.duration(report, least..=hour));
    let interval = within("interval", second, Duration::from_mins(5));
    let timeout = within("timeout", Duration::from_millis(1), Duration::from_secs(5));
    let at_most = get("at_most").map_or(Some(4), |field| field.whole(report, 1..=1_000));
    Some(Webhook {
        url: url?,
        secret,
        secret_env,
        targets,
        states,
        at_most: at_most?,
        interval: interval?,
        timeout: timeout?,
    })
}

fn url(report: &mut Report<'_>, field: &Field<'_>) -> Option<Uri> {
    let text = field.text(report, URL)?;
    let refuse = |report: &mut Report<'_>, what: &str| report.add(&field.span, field.name.clone(), what);
    if text.starts_with("https://") {
        refuse(report, "https isn't spoken: must be http://, to a relay nearby if need be");
        return None;
    }
    let uri = text.parse::<Uri>().ok().filter(|uri| {
        let host =
            uri.authority().filter(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
        uri.scheme_str() == Some("http") && host.is_some()
    });
    if uri.is_none() || text.contains('#') {
        // Never shown: where it is posted to may be what nobody else should know.
        refuse(report, &format!("the url is refused: must be {URL}"));
        return None;
    }
    uri
}

fn secret(report: &mut Report<'_>, field: &Field<'_>) -> Option<String> {
    let secret = field.text(report, SECRET)?;
    if is_secret(secret) {
        return Some(secret.to_owned());
    }
    report.add(&field.span, field.name.clone(), format!("the secret is out of range: must be {SECRET}"));
    None
}

fn names(report: &mut Report<'_>, field: &Field<'_>, defined: Option<&DeTable<'_>>) -> Vec<String> {
    const NAMES: &str = "a list of names of targets";
    let mut names = Vec::new();
    for (name, entry) in entries(report, field, NAMES) {
        if defined.is_none_or(|table| !table.contains_key(name)) {
            report.add(&entry.span, entry.name, format!("{name:?} is no target: there is no [target.{name}]"));
        }
        names.push(name.to_owned());
    }
    names
}

fn states(report: &mut Report<'_>, field: &Field<'_>) -> Vec<State> {
    let all = [State::Closed, State::Open, State::HalfOpen, State::ForcedOpen, State::Disabled];
    let words = all.map(State::as_str).join(", ");
    let mut states = Vec::new();
    for (name, entry) in entries(report, field, &format!("a list of states, of {words}")) {
        match all.into_iter().find(|state| state.as_str() == name) {
            Some(state) => states.push(state),
            None => entry.refuse(report, &format!("one of {words}")),
        }
    }
    states
}

/// The entries of a list that isn't empty: each with its place.
fn entries<'d>(report: &mut Report<'_>, field: &Field<'d>, what: &str) -> Vec<(&'d str, Field<'d>)> {
    let Some(list) = field.value.as_array().filter(|list| !list.is_empty()) else {
        field.refuse(report, what);
        return Vec::new();
    };
    let fields = list.iter().enumerate().map(|(n, value)| Field::new(format!("{}[{n}]", field.name), value));
    fields.filter_map(|entry| Some((entry.text(report, what)?, entry))).collect()
}
