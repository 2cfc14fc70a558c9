//! The `streamsan` command.
//!
//! Standard output belongs to the program under test, or to the data that was asked for;
//! everything that the command says of itself goes to standard error.
#![forbid(unsafe_code)]

mod commands;
mod error;
mod launch;
mod live;
mod log;
mod options;

use options::Command;
use streamsan_model::ExitCode;

/// Reading kernels and analysing traces make many small things for a short time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    launch::outlive_file_size_limit();
    let code = match options::parse(std::env::args_os()) {
        Ok(arguments) => {
            commands::color_as(arguments.color);
            dispatch(arguments.command)
        }
        Err(code) => code,
    };
    std::process::ExitCode::from(code.0)
}

fn dispatch(command: Command) -> ExitCode {
    if matches!(command, Command::Run(_) | Command::Settle(_) | Command::Demo(_)) {
        log::start();
    }
    let outcome = match command {
        Command::Run(options) => commands::run(&options),
        Command::Settle(options) => commands::settle(&options),
        Command::Check(options) => commands::check(&options),
        Command::Explain(options) => commands::explain(&options),
        Command::Advise(options) => commands::advise(&options),
        Command::Export(options) => commands::export(&options),
        Command::Diff(options) => commands::diff(&options),
        Command::Suppress(options) => commands::suppress(&options),
        Command::Demo(options) => commands::demo(&options),
        Command::Doctor(options) => commands::doctor(&options),
        Command::Kernels(options) => commands::kernels(&options),
        Command::Stats(options) => commands::stats(&options),
        Command::View(options) => commands::view(&options),
        Command::KnownUpstream => commands::known_upstream(),
        Command::TsanStub => commands::tsan_stub(),
        Command::Completions(options) => commands::completions(&options),
        Command::Man(options) => commands::man(&options),
        Command::Mcp(options) => commands::mcp(&options),
        Command::DemoProgram { clean } => commands::demo_program(clean),
        Command::CallDriver { way } => commands::call_driver(&way),
        Command::ProbeDriver => commands::probe_driver(),
    };
    let code = outcome.unwrap_or_else(|error| {
        commands::warn(&error.to_string());
        error.exit_code()
    });
    match commands::not_printed().map(error::Error::Output) {
        Some(error) => {
            commands::warn(&error);
            if code == ExitCode::SUCCESS { error.exit_code() } else { code }
        }
        None => code,
    }
}
