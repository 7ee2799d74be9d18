//! The log of a gateway in a process of its own, and whoever else is told what goes on.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
#[cfg(feature = "otlp")]
use tracing_subscriber::{
    layer::{Layer as _, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use crate::Config;

/// What must be told a last time before the process ends.
#[derive(Debug)]
pub(crate) struct Log {
    #[cfg(feature = "otlp")]
    exporter: Option<crate::otlp::Exporter>,
}

impl Log {
    /// Begins to log to standard error, at the level in `RUST_LOG` or else `info`, and to export what the configuration says.
    ///
    /// # Errors
    ///
    /// The exporter can't be made, or there is another log in the process.
    pub(crate) fn start(config: &Config) -> io::Result<Self> {
        let level = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
        let color = io::stderr().is_terminal();
        #[cfg(feature = "otlp")]
        if let Some(otlp) = config.otlp.as_ref().filter(|otlp| otlp.traces) {
            let exporter = crate::otlp::Exporter::start(otlp).map_err(io::Error::other)?;
            let lines = tracing_subscriber::fmt::layer().with_ansi(color).with_writer(io::stderr);
            // Each with a filter of its own: what is exported isn't what is logged.
            tracing_subscriber::registry()
                .with(lines.with_filter(level))
                .with(exporter.layer())
                .try_init()
                .map_err(io::Error::other)?;
            return Ok(Self { exporter: Some(exporter) });
        }
        let _ = config;
        tracing_subscriber::fmt()
            .with_env_filter(level)
            .with_ansi(color)
            .with_writer(io::stderr)
            .try_init()
            .map_err(io::Error::other)?;
        Ok(Self {
            #[cfg(feature = "otlp")]
            exporter: None,
        })
    }

    /// Tells what is left to tell.
    pub(crate) async fn end(self) {
        #[cfg(feature = "otlp")]
        if let Some(exporter) = self.exporter {
            exporter.shutdown().await;
        }
    }
}
