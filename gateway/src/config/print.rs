//! The effective configuration as text: what `check` prints, and a file that means the same.

use std::fmt;
use std::time::Duration;

use portcullis::{Policy, Priority};
use portcullis_numbers::policies::call;
use portcullis_numbers::policies::reader::join;
use toml::Value;

use super::{Config, Otlp, Route, Target, Webhook};

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "listen = {}", text(&self.listen))?;
        match self.admin {
            Some(admin) => writeln!(f, "admin = {}", text(&admin))?,
            None => writeln!(f, "admin = \"off\"")?,
        }
        if self.admin_token.is_some() {
            writeln!(f, "# admin_token is set; it isn't shown")?;
        }
        writeln!(f, "max_concurrent = {}", self.max_concurrent)?;
        writeln!(f, "metrics_targets = {}", self.metrics_targets)?;
        writeln!(f, "header_timeout = {}", duration(self.header_timeout))?;
        writeln!(f, "write_timeout = {}", duration(self.write_timeout))?;
        writeln!(f, "shutdown_timeout = {}", duration(self.shutdown_timeout))?;
        if let Some(otlp) = &self.otlp {
            write!(f, "\n{otlp}")?;
        }
        for webhook in &self.webhooks {
            write!(f, "\n{webhook}")?;
        }
        for route in &self.routes {
            write!(f, "\n{route}")?;
        }
        for target in &self.targets {
            write!(f, "\n{target}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[otlp]")?;
        if let Some(endpoint) = &self.endpoint {
            writeln!(f, "endpoint = {}", text(endpoint))?;
        }
        writeln!(f, "traces = {}", self.traces)?;
        writeln!(f, "metrics = {}", self.metrics)
    }
}

impl fmt::Display for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[webhook]]\nurl = {}", text(&self.url))?;
        match &self.secret_env {
            Some(name) => writeln!(f, "secret_env = {}", text(name))?,
            None if self.secret.is_some() => writeln!(f, "# secret is set; it isn't shown")?,
            None => {}
        }
        if let Some(targets) = &self.targets {
            writeln!(f, "targets = {}", Value::from(targets.clone()))?;
        }
        let states: Vec<&str> = self.states.iter().map(|state| state.as_str()).collect();
        writeln!(f, "states = {}", Value::from(states))?;
        writeln!(f, "at_most = {}", self.at_most)?;
        writeln!(f, "interval = {}", duration(self.interval))?;
        writeln!(f, "timeout = {}", duration(self.timeout))
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[[route]]")?;
        if let Some(host) = &self.host {
            writeln!(f, "host = {}", text(host))?;
        }
        writeln!(f, "path = {}", text(&self.path))?;
        writeln!(f, "target = {}", text(&self.target))?;
        if self.stream {
            writeln!(f, "stream = true")?;
        }
        if !self.admission {
            writeln!(f, "admission = false")?;
        }
        if self.priority != Priority::default() {
            writeln!(f, "priority = {}", text(&self.priority))?;
        }
        if self.priority_header {
            writeln!(f, "priority_header = true")?;
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}]", join("target", &self.name))?;
        let upstream = self.upstream.iter().map(|authority| Value::from(format!("http://{authority}"))).collect();
        writeln!(f, "upstream = {}", Value::Array(upstream))?;
        if let Some(connect_timeout) = self.connect_timeout {
            writeln!(f, "connect_timeout = {}", duration(connect_timeout))?;
        }
        writeln!(f, "timeout = {}", duration(self.timeout))?;
        writeln!(f, "stream = {}", self.stream)?;
        f.write_str(&lines(&toml::Table::try_from(&self.policy).map_err(|_| fmt::Error)?))?;
        let call = toml::Table::try_from(&self.call).map_err(|_| fmt::Error)?;
        for (key, value) in call.iter().filter(|(key, _)| *key != "timeout") {
            writeln!(f, "{} = {value}", call::name_here(key))?;
        }
        let shadows = join(&join("target", &self.name), "shadow");
        for (name, policy) in &self.shadows {
            writeln!(f, "\n[{}]", join(&shadows, name))?;
            f.write_str(&over_others(policy)?)?;
        }
        Ok(())
    }
}

/// The fields of a policy, a line each, where others stand in for those that aren't there: one that means none has to be said.
pub(crate) fn over_others(policy: &Policy) -> Result<String, fmt::Error> {
    let mut fields = toml::Table::try_from(policy).map_err(|_| fmt::Error)?;
    fields.entry("adaptive").or_insert_with(|| Value::from("none"));
    Ok(lines(&fields))
}

fn lines(fields: &toml::Table) -> String {
    fields.iter().map(|(key, value)| format!("{key} = {value}\n")).collect()
}

fn text(value: &impl ToString) -> Value {
    Value::String(value.to_string())
}

fn duration(value: Duration) -> Value {
    text(&humantime::format_duration(value))
}
