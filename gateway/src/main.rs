//! The command line of the gateway.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use portcullis_gateway::drill::Drill;
use portcullis_gateway::top::Top;
use portcullis_gateway::{Config, demo, drill, serve, top};
use portcullis_numbers::{audit, plan, replay, simulate};
use tracing_subscriber::EnvFilter;

/// A reverse proxy in which a dead target hurts nobody else.
#[derive(Parser)]
#[command(name = "portcullis", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the proxy until SIGTERM; SIGHUP reads the configuration again.
    Serve {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration and print what is in effect for each target; exit code 2 if it is wrong.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Show an outage over real loopback connections, with portcullis and without.
    Demo {
        /// Print one JSON object and nothing else to standard output.
        #[arg(long)]
        json: bool,
        /// How long the load of each of the two runs takes; less than 6 is taken as 6.
        #[arg(long, value_name = "N", default_value_t = demo::DEFAULT_SECONDS,
              value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
    },
    /// Force a target open for a while and tell what its callers got: fallbacks or errors. Exit code 1 if callers got errors where there is a
    /// fallback, or if nobody called.
    Drill {
        /// The target; it must be closed.
        #[arg(long, value_name = "NAME")]
        target: String,
        /// How long; the gateway ends it by itself, should this program die.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=drill::LONGEST.as_secs()))]
        seconds: u64,
        /// The admin listener.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
        admin: String,
        /// The admin token; PORTCULLIS_ADMIN_TOKEN unless given, where other users of the machine can't read it.
        #[arg(long, value_name = "TOKEN")]
        token: Option<String>,
    },
    /// Show the targets of a running gateway in the terminal, worst first, as its dashboard does.
    Top {
        /// The admin listener.
        #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090")]
        admin: String,
        /// The admin token; PORTCULLIS_ADMIN_TOKEN unless given, where other users of the machine can't read it.
        #[arg(long, value_name = "TOKEN")]
        token: Option<String>,
    },
    /// Write a policy from access logs, each value with its derivation.
    Plan(plan::Args),
    /// Run the engine over access logs, and tell what a policy would have done.
    Replay(replay::Args),
    /// Tell which values of a policy no longer fit the logs; exit code 1 if one doesn't.
    Audit(audit::Args),
    /// Run the engine in a model of callers, gateway and upstreams.
    Simulate(simulate::Args),
}

/// What a configuration that is wrong ends with.
const WRONG_CONFIG: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve { config } => match serve::run(&config).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(serve::Error::Config(errors)) => refused(&config, &errors),
            Err(error) => failed(&error),
        },
        Command::Check { config } => match Config::load(&config) {
            Ok(effective) => {
                let notes: String = effective.notes().iter().map(|note| format!("# note: {note}\n")).collect();
                print(&format!("{notes}{effective}"))
            }
            Err(errors) => refused(&config, &errors),
        },
        Command::Drill { target, seconds, admin, token } => {
            log_to_stderr("error");
            let drill = Drill { target, length: Duration::from_secs(seconds), admin, token: token_of(token) };
            match drill::run(&drill).await {
                Ok(report) => {
                    let printed = print(&report.to_string());
                    if report.is_passed() { printed } else { ExitCode::FAILURE }
                }
                Err(error) => failed(&error),
            }
        }
        Command::Top { admin, token } => match top::run(&Top { admin, token: token_of(token) }).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
        Command::Plan(args) => plan::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Demo { json, seconds } => {
            log_to_stderr("error");
            match demo::play(seconds, json).await {
                Ok(report) => shown(&report, json),
                Err(error) => failed(&error),
            }
        }
    }
}

/// Prints the report; a run in which the healthy upstream lost a request is a failure.
fn shown(report: &demo::Report, json: bool) -> ExitCode {
    let text = if json { serde_json::to_string(report).unwrap_or_default() + "\n" } else { demo::table(report) };
    if print(&text) == ExitCode::SUCCESS && report.with.bystanders_lost() == 0 && report.with.recovered() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The admin token that is given, or that of the environment.
fn token_of(given: Option<String>) -> Option<String> {
    given.or_else(|| std::env::var(serve::TOKEN).ok()).filter(|token| !token.is_empty())
}

fn print(text: &str) -> ExitCode {
    // A closed pipe is the reader's decision, not worth a panic.
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn refused(file: &std::path::Path, errors: &portcullis_gateway::ConfigErrors) -> ExitCode {
    eprintln!("{}: the configuration is refused\n{errors}", file.display());
    ExitCode::from(WRONG_CONFIG)
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("portcullis: {error}");
    ExitCode::FAILURE
}

fn log_to_stderr(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let color = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(color).with_writer(std::io::stderr).init();
}
