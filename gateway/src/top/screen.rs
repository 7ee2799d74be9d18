//! What the operator looks at, and what the keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::feed::Heard;
use super::model::{Model, Sort};

/// The table, and what is before it.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) model: Model,
    pub(super) sort: Sort,
    pub(super) search: String,
    /// The target that the keys are about; it stays the same when the order changes.
    pub(super) selected: Option<String>,
    pub(super) mode: Mode,
    /// What became of the last thing that was done.
    pub(super) message: String,
    /// Rows that fit, as last drawn.
    pub(super) page: usize,
}

/// What the keys do.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Mode {
    /// They move in the table.
    #[default]
    Table,
    /// They write what is searched for.
    Search,
    /// They answer a question.
    Confirm(Act, String),
    /// They move in all that there is to say of a target.
    Details { target: String, all: Option<Value>, scroll: u16 },
}

/// What an operator does to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    ForceOpen,
    Disable,
    Release,
}

impl Act {
    /// As the admin listener calls it.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::ForceOpen => "force-open",
            Self::Disable => "disable",
            Self::Release => "release",
        }
    }

    /// What it means.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::ForceOpen => "Force it open: all its calls are refused until it is released",
            Self::Disable => {
                "Disable its breaker: it stays closed whatever fails, until it is released; its limit holds"
            }
            Self::Release => "Release it: it closes, with an empty window",
        }
    }
}

/// What is to be done outside of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Do {
    Quit,
    Act(Act, String),
    /// Fetch all that there is to say of a target.
    Look(String),
}

impl Screen {
    /// Takes note of what was heard. The selection stays at its target, and goes to the first if that is gone.
    pub(super) fn hear(&mut self, heard: Heard) {
        self.model.hear(heard);
        self.keep_selection();
    }

    /// The names in the table, in order.
    pub(super) fn names(&self) -> Vec<&str> {
        self.model.names(&self.search, self.sort)
    }

    fn keep_selection(&mut self) {
        let names = self.names();
        let is_there = self.selected.as_deref().is_some_and(|selected| names.contains(&selected));
        if !is_there {
            self.selected = names.first().map(|&name| name.to_owned());
        }
    }

    fn step(&mut self, by: isize) {
        let names = self.names();
        let Some(last) = names.len().checked_sub(1) else { return };
        let at = names.iter().position(|&name| Some(name) == self.selected.as_deref()).unwrap_or(0);
        self.selected = Some(names[at.saturating_add_signed(by).min(last)].to_owned());
    }

    /// All that there is to say of a target has come.
    pub(super) fn told(&mut self, name: &str, told: Value) {
        if let Mode::Details { target, all, .. } = &mut self.mode
            && target == name
        {
            *all = Some(told);
        }
    }

    /// What a key does.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Do> {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Do::Quit);
        }
        match std::mem::take(&mut self.mode) {
            Mode::Table => return self.table_key(key.code),
            Mode::Search => self.search_key(key.code),
            Mode::Confirm(act, name) => {
                if matches!(key.code, KeyCode::Char('y' | 'Y')) {
                    return Some(Do::Act(act, name));
                }
                self.message = "nothing was done".to_owned();
            }
            Mode::Details { target, all, scroll } => {
                let scroll = match key.code {
                    KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') | KeyCode::Left => return None,
                    KeyCode::Down | KeyCode::Char('j') => scroll.saturating_add(1),
                    KeyCode::Up | KeyCode::Char('k') => scroll.saturating_sub(1),
                    KeyCode::PageDown | KeyCode::Char(' ') => scroll.saturating_add(10),
                    KeyCode::PageUp => scroll.saturating_sub(10),
                    KeyCode::Home => 0,
                    _ => scroll,
                };
                self.mode = Mode::Details { target, all, scroll };
            }
        }
        None
    }

    fn table_key(&mut self, code: KeyCode) -> Option<Do> {
        let page = isize::try_from(self.page.max(1)).unwrap_or(1);
        match code {
            KeyCode::Char('q') => return Some(Do::Quit),
            KeyCode::Esc => self.search.clear(),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.mode = Mode::Search,
            KeyCode::Char('o') => self.confirm(Act::ForceOpen),
            KeyCode::Char('d') => self.confirm(Act::Disable),
            KeyCode::Char('r') => self.confirm(Act::Release),
            KeyCode::Enter | KeyCode::Right => {
                let target = self.selected.clone()?;
                self.mode = Mode::Details { target: target.clone(), all: None, scroll: 0 };
                return Some(Do::Look(target));
            }
            _ => {}
        }
        self.keep_selection();
        None
    }

    fn search_key(&mut self, code: KeyCode) {
        self.mode = Mode::Search;
        match code {
            KeyCode::Enter => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.mode = Mode::Table;
                self.search.clear();
            }
            KeyCode::Backspace => drop(self.search.pop()),
            KeyCode::Char(letter) => self.search.push(letter),
            _ => {}
        }
        self.keep_selection();
    }

    /// Asks first. What is old may not be as it is shown, so nothing is done about it.
    fn confirm(&mut self, act: Act) {
        if self.model.lost.is_some() {
            self.message = "not while the gateway isn't heard: what is shown is old".to_owned();
        } else if let Some(name) = self.selected.clone() {
            self.mode = Mode::Confirm(act, name);
        }
    }
}
