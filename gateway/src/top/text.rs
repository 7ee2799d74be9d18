//! Numbers, times and names as the screen has them.

use super::model::Target;

/// A name that does nothing to the terminal and can't be taken for another one by what isn't seen: control characters, and those that turn the direction or
/// have no width, become visible.
pub(super) fn harmless(name: &str) -> String {
    let is_unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    name.chars().map(|c| if is_unseen(c) { '\u{fffd}' } else { c }).collect()
}

/// A span of time in one or two units.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A number per second, with as many digits as tell something.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        0.0 => "-".to_owned(),
        ..10.0 => format!("{rate:.1}"),
        ..10_000.0 => format!("{rate:.0}"),
        _ => format!("{:.0}k", rate / 1e3),
    }
}

/// Milliseconds of a latency.
pub(super) fn millis(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 10.0 => format!("{millis:.1}ms"),
        Some(millis) if millis < 10_000.0 => format!("{millis:.0}ms"),
        Some(millis) => format!("{:.0}s", millis / 1e3),
    }
}

/// When a target may be probed, or its drill ends; and how much is left of that.
pub(super) fn countdown(target: &Target, now_ms: u64) -> String {
    let left = |until: u64| span(until.saturating_sub(now_ms).div_ceil(1_000) * 1_000);
    match (target.seen.drill_until_ms, target.seen.reopen_at_ms) {
        (Some(until), _) => format!("drill {}", left(until)),
        (None, Some(until)) if until > now_ms => format!("probe {}", left(until)),
        (None, Some(_)) => "probe due".to_owned(),
        (None, None) => String::new(),
    }
}

/// Calls that ended of late, as a row of blocks of eight heights.
pub(super) fn sparkline(target: &Target, width: usize) -> String {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let recent: Vec<f64> = target.history.iter().rev().take(width).rev().map(|&(ended, _)| ended).collect();
    let most = recent.iter().copied().fold(0.0, f64::max);
    // At least the lowest block where there was anything.
    let height = |ended: f64| if most > 0.0 { (ended / most * 8.0).ceil() as usize } else { 0 };
    recent.iter().map(|&ended| BLOCKS[height(ended).min(8)]).collect()
}

/// The reason for which most was refused so far, and how often.
pub(super) fn refusals(target: &Target) -> String {
    let mut all: Vec<_> = target.seen.refusals.iter().filter(|&(_, &count)| count > 0).collect();
    all.sort_by_key(|&(_, &count)| std::cmp::Reverse(count));
    let all: Vec<String> = all.into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    all.join(" ")
}
