//! How it is drawn: a line about the process, the table, the last transitions, and a line that says what the keys do.

mod details;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};

use super::model::Target;
use super::screen::{Mode, Screen};
use super::text::{countdown, harmless, millis, rate, refusals, span, sparkline};

/// Draws the screen, at a moment of the gateway's clock.
pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen, now_ms: u64) {
    let in_details = matches!(screen.mode, Mode::Details { .. });
    let moves = if frame.area().height >= 16 && !in_details { 6 } else { 0 };
    let parts = [Constraint::Length(1), Constraint::Min(3), Constraint::Length(moves), Constraint::Length(1)];
    let [head, body, last, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(process(screen), head);
    if let Mode::Details { target, all, scroll } = &screen.mode {
        let [head, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(body);
        frame.render_widget(details::title(&screen.model, target, now_ms), head);
        frame.render_widget(details::all(all.as_ref(), *scroll), rest);
    } else {
        table(frame, screen, body, now_ms);
    }
    frame.render_widget(transitions(screen, moves), last);
    frame.render_widget(keys(screen), foot);
    if let Mode::Confirm(act, name) = &screen.mode {
        let question = vec![
            Line::from(vec![Span::raw("Target: "), harmless(name).bold()]),
            Line::raw(act.meaning()),
            Line::raw(""),
            Line::from("y: do it    any other key: don't".bold()),
        ];
        let width = frame.area().width.min(64);
        let area = frame.area().centered(Constraint::Length(width), Constraint::Length(8));
        let block = Block::bordered().title(format!(" {} ", act.path()));
        frame.render_widget(Clear, area);
        frame.render_widget(Paragraph::new(question).wrap(Wrap { trim: false }).block(block), area);
    }
}

/// The process, and whether it is heard.
fn process(screen: &Screen) -> Paragraph<'static> {
    let model = &screen.model;
    if let Some(why) = &model.lost {
        let text = format!(" STALE  {}: what is shown is old; trying again", harmless(why));
        return Paragraph::new(text).style(Style::new().fg(Color::Black).bg(Color::Yellow).bold());
    }
    if model.version.is_empty() {
        return Paragraph::new(" listening...");
    }
    let counted = |state: &str| model.targets.values().filter(|target| target.seen.state == state).count();
    let mut parts = vec![format!(" portcullis {}", harmless(&model.version)).bold()];
    if model.health.status != "ok" {
        parts.push(format!("  {}", harmless(&model.health.status).to_uppercase()).yellow().bold());
    }
    parts.push(format!("  {} of {} in flight", model.health.in_flight, model.health.max_concurrent).into());
    parts.push(format!("  {} targets", model.targets.len()).into());
    for state in ["OPEN", "HALF_OPEN", "FORCED_OPEN", "DISABLED"] {
        if counted(state) > 0 {
            parts.push(Span::styled(format!("  {} {state}", counted(state)), colour(state)));
        }
    }
    Paragraph::new(Line::from(parts))
}

/// What a state looks like; its name says it as well.
fn colour(state: &str) -> Style {
    match state {
        "OPEN" => Style::new().fg(Color::Red).bold(),
        "FORCED_OPEN" => Style::new().fg(Color::Magenta).bold(),
        "HALF_OPEN" => Style::new().fg(Color::Yellow).bold(),
        "DISABLED" => Style::new().fg(Color::Blue).bold(),
        _ => Style::new().fg(Color::Green),
    }
}

/// A column: its title, its width, the width of the screen from which on it is shown, and what is in it.
type Column = (&'static str, u16, u16, fn(&Target, u64) -> String);

/// From left to right, after the name.
const COLUMNS: [Column; 10] = [
    ("STATE", 11, 0, |target, _| target.seen.state.clone()),
    ("FOR", 7, 40, |target, now| target.seen.since_ms.map_or_else(|| "-".into(), |at| span(now.saturating_sub(at)))),
    ("NEXT", 12, 56, countdown),
    ("CALLS/s", 8, 48, |target, _| rate(target.pace.admitted)),
    ("FAIL", 5, 64, |target, _| {
        target.pace.failure_share().map_or_else(|| "-".into(), |share| format!("{:.0}%", share * 100.0))
    }),
    ("IN FLIGHT", 11, 76, |target, _| match target.seen.limit {
        Some(limit) => format!("{}/{limit}", target.seen.in_flight),
        None => target.seen.in_flight.to_string(),
    }),
    ("P50", 7, 92, |target, _| millis(target.seen.latency.and_then(|latency| latency.p50_ms))),
    ("P99", 7, 84, |target, _| millis(target.seen.latency.and_then(|latency| latency.p99_ms))),
    ("RECENT", 24, 150, |target, _| sparkline(target, 24)),
    ("REFUSED", 30, 122, |target, _| refusals(target)),
];

fn table(frame: &mut Frame<'_>, screen: &mut Screen, area: Rect, now_ms: u64) {
    screen.page = usize::from(area.height.saturating_sub(1));
    let columns: Vec<&Column> = COLUMNS.iter().filter(|&&(_, _, from, _)| area.width >= from).collect();
    let names = screen.names();
    let at = names.iter().position(|&name| Some(name) == screen.selected.as_deref());
    // Only what is seen is made: there may be thousands.
    let first = at.unwrap_or(0).saturating_sub(screen.page.saturating_sub(1) / 2);
    let first = first.min(names.len().saturating_sub(screen.page));
    let rows = names.iter().skip(first).take(screen.page).filter_map(|&name| {
        let target = screen.model.targets.get(name)?;
        let name = if target.seen.configured { harmless(name) } else { format!("({})", harmless(name)) };
        let cells = columns.iter().enumerate().map(|(n, (_, _, _, told))| {
            let style = if n == 0 { colour(&target.seen.state) } else { Style::new() };
            Cell::from(harmless(&told(target, now_ms))).style(style)
        });
        Some(Row::new([Cell::from(name)].into_iter().chain(cells)))
    });
    let titles = ["TARGET"].into_iter().chain(columns.iter().map(|(title, ..)| *title));
    let widths =
        [Constraint::Min(8)].into_iter().chain(columns.iter().map(|&&(_, width, ..)| Constraint::Length(width)));
    let mut style = Style::new();
    if screen.model.lost.is_some() {
        style = style.add_modifier(Modifier::DIM);
    }
    let table = Table::new(rows, widths)
        .header(Row::new(titles).style(Style::new().bold().underlined()))
        .row_highlight_style(Style::new().reversed())
        .highlight_symbol("> ")
        .style(style);
    let mut state = TableState::new().with_selected(at.map(|at| at - first));
    frame.render_stateful_widget(table, area, &mut state);
    if names.is_empty() && !screen.search.is_empty() {
        let text = Paragraph::new("no target matches").alignment(Alignment::Center);
        frame.render_widget(text, area.centered_vertically(Constraint::Length(1)));
    }
}

/// The last transitions, the newest first.
fn transitions(screen: &Screen, height: u16) -> Paragraph<'static> {
    let lines = screen.model.transitions.iter().rev().take(usize::from(height.saturating_sub(1))).map(|moved| {
        // The time of day is enough of it.
        let time = harmless(moved.wall.get(11..19).unwrap_or_default());
        Line::from(vec![
            format!(" {time}Z  ").into(),
            harmless(&moved.target).bold(),
            format!("  {} to ", harmless(&moved.from)).into(),
            Span::styled(harmless(&moved.to), colour(&moved.to)),
            format!("  {}", harmless(&moved.cause).replace('_', " ")).into(),
        ])
    });
    let title = Line::from(" last transitions".bold().underlined());
    Paragraph::new([title].into_iter().chain(lines).collect::<Vec<_>>())
}

/// What the keys do, and what came of the last.
fn keys(screen: &Screen) -> Paragraph<'static> {
    let text = match &screen.mode {
        Mode::Search => format!(" search: {}_   Enter: keep  Esc: clear", harmless(&screen.search)),
        Mode::Details { .. } => " Esc: back  arrows: scroll".to_owned(),
        Mode::Confirm(..) => String::new(),
        Mode::Table => {
            let mut text = String::new();
            if !screen.message.is_empty() {
                text = format!(" {} ", harmless(&screen.message));
            }
            if !screen.search.is_empty() {
                text += &format!(" /{}", harmless(&screen.search));
            }
            let sort = screen.sort.name();
            text + &format!(
                " q: quit  /: search  s: sort ({sort})  Enter: details  o: force open  d: disable  r: release"
            )
        }
    };
    Paragraph::new(text).style(Style::new().dim())
}
