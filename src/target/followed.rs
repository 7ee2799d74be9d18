//! The words of a target whose calls are followed by shadows: each is told, and none is asked for its consent.
//!
//! A call that shadows follow is marked in its token, so that whoever settles it needs no look at the target to know. The mark and the ticket are
//! taken off before the target's own words are asked: they decide as if there were no shadow.

use super::{Token, Words};
use crate::gate;
use crate::priority::{Admit, Priority};
use crate::shadow::desk::Desk;
use crate::time::{AnyReading, Now, Reading};

impl Words {
    /// The rest of [`Words::enter`] where shadows follow.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_followed(&self, gate: gate::Word, is_async: bool, now: impl Fn() -> Now) -> Option<Token> {
        let time = Reading::new(now);
        let brief = self.brief();
        let started = (is_async || brief.is_timed()).then(|| time.now());
        let is_watched = brief.is_watched();
        if is_watched && !self.watch_or_cancel(gate, time.now()) {
            return None;
        }
        let token = Token::new(gate, false, is_async, started).watched(is_watched);
        Some(self.followed(token, Admit { priority: Priority::Critical, is_async }, &time))
    }

    /// The token of a call that the gate let in and nobody counts while it runs.
    #[inline]
    pub(super) fn begin_followed(&self, gate: gate::Word, how: Admit, now: impl Fn() -> Now) -> Token {
        let time = Reading::new(now);
        let started = (how.is_async || self.brief().is_timed()).then(|| time.now());
        self.followed(Token::new(gate, false, how.is_async, started), how, &time)
    }

    /// The token of a call that starts, once the shadows have been asked about it, if there are any.
    #[inline]
    pub(super) fn followed<F: Fn() -> Now>(&self, token: Token, how: Admit, time: &Reading<F>) -> Token {
        if self.brief().is_shadowed() { self.ask_shadows(token, how, time) } else { token }
    }

    #[cold]
    #[inline(never)]
    fn ask_shadows<F: Fn() -> Now>(&self, token: Token, how: Admit, time: &Reading<F>) -> Token {
        let read = || time.now();
        token.with_ticket(self.desk().ask(how, &AnyReading::new(&read)))
    }

    pub(crate) fn desk(&self) -> &Desk {
        self.rare.force().shadows.force()
    }

    /// Whether anybody ever shadowed the target.
    pub(crate) fn desk_if_any(&self) -> Option<&Desk> {
        self.rare.get()?.shadows.get()
    }

    /// Gives the permit of a call back that was held on to.
    pub(crate) fn let_go(&self, token: Token) {
        if let Some(ticket) = token.ticket() {
            self.desk().let_go(ticket);
        }
        self.release_held();
    }

    /// The token of a call that isn't made after all, as the target's own words know it.
    pub(super) fn unfollowed(&self, token: Token) -> Token {
        let Some(ticket) = token.ticket() else { return token };
        self.desk().cancel(ticket);
        token.with_ticket(None)
    }

    /// The token of a call that begins later than its permit was granted.
    #[cfg(feature = "tower")]
    pub(super) fn tell_shadows_of_begin(&self, token: Token, at: Now) {
        if let Some(ticket) = token.ticket() {
            self.desk().begun(ticket, at);
        }
    }

    /// The token of a call that gave its first sign of life: it isn't counted as running any more.
    pub(crate) fn answered(&self, token: Token) -> Token {
        if let Some(ticket) = token.ticket() {
            self.desk().answered(ticket);
        }
        self.unwatched(token)
    }
}
