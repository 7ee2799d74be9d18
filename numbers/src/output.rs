//! How the tools answer: on standard output, beside it on standard error, in files, and with their exit code.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// What a tool ends with that can't do its work.
const UNUSABLE: u8 = 2;

/// Prints the answer. Whoever closed the pipe has read enough: that is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output can't be written: {error}"))
        }
        _ => Ok(()),
    }
}

/// Says what isn't the answer, if anybody listens: the answer comes in any case.
pub(crate) fn aside(text: impl Display) {
    drop(write!(io::stderr(), "{text}"));
}

/// Writes a file.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: can't be written: {error}", file.display()))
}

/// Says why the tool can't do its work.
pub(crate) fn refuse(error: impl Display) -> ExitCode {
    aside(format_args!("{error}\n"));
    ExitCode::from(UNUSABLE)
}
