//! The `[target.NAME.shadow.NAME]` tables: candidates for a target's policy, each as far as it differs from that.

use std::time::Duration;

use portcullis::Policy;
use portcullis::call::CallPolicy;
use toml::de::DeTable;

use super::reader::{Field, Report, join};
use super::{OWN, call, policy};

/// More than one target's calls are told to.
const MOST: usize = 4;

/// Reads the shadows of a target whose own table can be read; what one doesn't set is as for the target.
pub fn read_shadows(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'_>,
    defaults: &DeTable<'_>,
    (timeout, target_call): (Duration, &CallPolicy),
) -> Vec<(String, Policy)> {
    let Some(value) = own.get("shadow") else { return Vec::new() };
    let whole = Field::new(join(&target.name, "shadow"), value);
    let Some(tables) = whole.table(report) else { return Vec::new() };
    if tables.len() > MOST {
        whole.refuse(report, &format!("at most {MOST} shadows"));
    }
    let mut base = defaults.clone();
    for (key, value) in own {
        base.remove(key.get_ref().as_ref());
        base.insert(key.clone(), value.clone());
    }
    let mut read = Vec::new();
    for (key, value) in tables {
        let name = key.get_ref().as_ref();
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            let message = "the name is out of range: must be 1 to 64 bytes without control characters";
            report.add(&key.span(), whole.name.clone(), message);
            continue;
        }
        let field = Field::new(join(&whole.name, name), value);
        let Some(table) = field.table(report) else { continue };
        let is_foreign = |key: &str| OWN.contains(&key) || call::is_field(key);
        for key in table.keys().filter(|key| is_foreign(key.get_ref())) {
            let message = format!("belongs to a target's calls: must be under [{}]", target.name);
            report.add(&key.span(), join(&field.name, key.get_ref()), message);
        }
        let Some(policy) = policy::read(report, &field, table, (&base, "the target or defaults"), timeout) else {
            continue;
        };
        // It is to be put in force by one call, without a look at the file.
        if let Err(error) = target_call.check_with(&policy) {
            report.add(&field.span, field.name.clone(), format!("doesn't go with the target's calls: {error}"));
        }
        read.push((name.to_owned(), policy));
    }
    read
}
