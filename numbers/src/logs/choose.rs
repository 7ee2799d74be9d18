//! Whom a call went to.

use std::borrow::Cow;

use regex::bytes::Regex;

use super::parse::Entry;
use crate::routes::{Routes, host_of};

/// How a call's target is found.
#[derive(Debug)]
pub(super) enum Choose {
    /// It is told; or else the host is, or this is all that is known.
    Told(String),
    /// The first group of an expression in the path, or all that the expression finds.
    Regex(Regex),
    /// By the gateway's routes.
    Routes(Routes<String>),
}

impl Choose {
    /// The target's name, if it can be told; it is empty if the log says so.
    pub(super) fn target<'e>(&'e self, entry: &'e Entry<'_>) -> Option<&'e [u8]> {
        match self {
            Self::Told(otherwise) => {
                let told = [&entry.target, &entry.host].into_iter().find(|name| !matches!(&***name, b"" | b"-"));
                Some(told.map_or(otherwise.as_bytes(), Cow::as_ref))
            }
            Self::Regex(regex) => {
                let found = regex.captures(&entry.path)?;
                Some(found.get(1).or_else(|| found.get(0))?.as_bytes())
            }
            Self::Routes(routes) => {
                let host = std::str::from_utf8(&entry.host).ok().and_then(host_of);
                let path = std::str::from_utf8(&entry.path).ok()?;
                routes.find(|| host.as_deref(), path).map(String::as_bytes)
            }
        }
    }
}
