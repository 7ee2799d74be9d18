//! The targets of a running gateway in a terminal: what its dashboard shows, over the same stream.

mod feed;
mod model;
mod screen;
#[cfg(test)]
mod tests;
mod text;
mod view;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use http::Method;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

pub use crate::operator::Error;

use crate::hidden::Hidden;
use crate::operator::{Operator, path};
use screen::{Do, Mode, Screen};

/// How often what counts down is drawn again.
const TICK: Duration = Duration::from_millis(500);

/// Whom to look at. Its token isn't shown by `Debug`.
#[derive(Clone)]
pub struct Top {
    /// The admin listener, host and port.
    pub admin: String,
    /// Its token, if it has one.
    pub token: Option<String>,
}

impl fmt::Debug for Top {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { admin, token } = self;
        f.debug_struct("Top").field("admin", admin).field("token", &Hidden::of(token.as_deref())).finish()
    }
}

/// What there is to react to.
enum Met {
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// All there is to say of a target.
    Told(String, Value),
    /// What came of something that was done.
    Done(String),
}

/// Shows the gateway until the operator has seen enough.
///
/// # Errors
///
/// Standard output is no terminal, or the token is none that can be sent. A gateway that isn't there is waited for.
pub async fn run(top: &Top) -> Result<(), Error> {
    let operator = Operator::new(&top.admin, top.token.as_deref())?;
    if !io::stdout().is_terminal() {
        return Err(io::Error::other("top needs a terminal; scripts can read /targets of the admin listener").into());
    }
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, operator).await;
    ratatui::try_restore()?;
    Ok(shown?)
}

async fn show(terminal: &mut ratatui::DefaultTerminal, operator: Operator) -> io::Result<()> {
    let (tell, mut heard) = mpsc::channel(16);
    let following = tokio::spawn(feed::follow(operator.clone(), tell));
    let (meet, mut met) = mpsc::channel(64);
    let keys = meet.clone();
    // Keys are read by a thread that can wait for them; it goes with the process.
    thread::spawn(move || read_keys(&keys));
    let mut screen = Screen::default();
    let mut last = Instant::now();
    let mut tick = tokio::time::interval(TICK);
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        let since = u64::try_from(last.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now_ms = screen.model.now_ms.saturating_add(since);
        terminal.draw(|frame| view::draw(frame, &mut screen, now_ms))?;
        let todo = tokio::select! {
            Some(news) = heard.recv() => {
                if !matches!(news, feed::Heard::Lost(_)) {
                    last = Instant::now();
                }
                screen.hear(news);
                // As fresh as the rest.
                if let Mode::Details { target, .. } = &screen.mode { Some(Do::Look(target.clone())) } else { None }
            }
            Some(met) = met.recv() => match met {
                Met::Key(key) => screen.key(key),
                Met::Resized => None,
                Met::Told(name, told) => {
                    screen.told(&name, told);
                    None
                }
                Met::Done(message) => {
                    screen.message = message;
                    None
                }
            },
            _ = tick.tick() => None,
            // The terminal must be left as it was.
            _ = terminate.recv() => Some(Do::Quit),
        };
        match todo {
            None => {}
            Some(Do::Quit) => break,
            Some(todo) => drop(tokio::spawn(done(operator.clone(), todo, meet.clone()))),
        }
    }
    following.abort();
    Ok(())
}

/// Does what the operator wants, and tells what came of it.
async fn done(operator: Operator, todo: Do, meet: mpsc::Sender<Met>) {
    let met = match todo {
        Do::Quit => return,
        Do::Act(act, name) => {
            let asked = operator.ask(Method::POST, &format!("{}/{}", path(&name), act.path())).await;
            Met::Done(match asked {
                Ok(answer) if answer["changed"] == true => {
                    format!("{name}: {}", answer["state"].as_str().unwrap_or("done"))
                }
                Ok(_) => format!("{name}: it was so already"),
                Err(error) => format!("{name}: {error}"),
            })
        }
        Do::Look(name) => match operator.ask(Method::GET, &path(&name)).await {
            Ok(told) => Met::Told(name, told),
            Err(error) => Met::Done(format!("{name}: {error}")),
        },
    };
    // The screen may be closed by now.
    let _ = meet.send(met).await;
}

/// Hands keys on until nobody takes them.
fn read_keys(meet: &mpsc::Sender<Met>) {
    while let Ok(event) = event::read() {
        let met = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Met::Key(key),
            Event::Resize(..) => Met::Resized,
            _ => continue,
        };
        if meet.blocking_send(met).is_err() {
            return;
        }
    }
}
