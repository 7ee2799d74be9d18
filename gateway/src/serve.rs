//! The process around a gateway: its configuration file and its signals.

use std::path::Path;
use std::{fmt, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::log::Log;
use crate::{Config, ConfigErrors, Gateway};

/// The environment variable that gives the admin token if the file has none.
pub const TOKEN: &str = "PORTCULLIS_ADMIN_TOKEN";

/// Why the process ended.
#[derive(Debug)]
pub enum Error {
    /// The configuration is wrong.
    Config(ConfigErrors),
    /// The system refused something.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(errors) => errors.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Serves until SIGTERM or SIGINT and lets what runs finish; a second signal cuts it. SIGHUP reads the file again. Logs to standard error.
///
/// # Errors
///
/// The configuration is wrong, a listener can't be opened, or there is another log in the process.
pub async fn run(path: &Path) -> Result<(), Error> {
    let config = load(path).map_err(Error::Config)?;
    let log = Log::start(&config)?;
    let ended = serve(path, config).await;
    log.end().await;
    Ok(ended?)
}

async fn serve(path: &Path, config: Config) -> io::Result<()> {
    warn_of(&config);
    let mut gateway = Gateway::start(config).await?;
    // Before the addresses are told: whoever knows them may send a signal.
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stop = Stop { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? };
    tracing::info!(address = %gateway.address(), "proxy listening");
    if let Some(address) = gateway.admin_address() {
        tracing::info!(%address, "admin listening");
    }
    loop {
        tokio::select! {
            _ = hangup.recv() => reload(path, &mut gateway),
            () = stop.asked() => break,
        }
    }
    tracing::info!("stopping: no more connections, what runs may finish");
    tokio::select! {
        cut = gateway.shutdown() => tracing::info!(cut, "stopped"),
        () = stop.asked() => tracing::warn!("stopped at once by a second signal"),
    }
    Ok(())
}

/// Reads the file again; one that is wrong changes nothing.
fn reload(path: &Path, gateway: &mut Gateway) {
    let done = load(path).map_err(Error::Config).and_then(|config| {
        warn_of(&config);
        Ok(gateway.reload(&config)?)
    });
    match done {
        Ok(()) => tracing::info!(file = %path.display(), "reloaded"),
        Err(error) => tracing::error!(file = %path.display(), "reload refused, nothing changed:\n{error}"),
    }
}

fn load(path: &Path) -> Result<Config, ConfigErrors> {
    let mut config = Config::load(path)?;
    if config.admin_token.is_none() {
        config.admin_token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    }
    config.take_secrets()?;
    Ok(config)
}

fn warn_of(config: &Config) {
    for note in config.notes() {
        tracing::warn!("{note}");
    }
}

struct Stop {
    term: Signal,
    int: Signal,
}

impl Stop {
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
