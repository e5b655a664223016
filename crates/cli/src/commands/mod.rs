//! The subcommands.

mod advise;
mod compare;
mod completions;
mod connect;
mod demo;
mod emulate;
mod examples;
mod identity;
mod kernel_init;
mod lab;
mod listen;
mod man;
mod networks;
mod perf;
mod profiles;
mod proxy;
mod run;
mod study;
mod top;
mod trace;

use clap::Subcommand;
use rexmit_perf::kernel;

use crate::failure::Outcome;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Arguments),
    Listen(listen::Arguments),
    Connect(connect::Arguments),
    Identity(identity::Arguments),
    Perf(perf::Arguments),
    Emulate(Box<emulate::Arguments>),
    Proxy(Box<proxy::Arguments>),
    Run(run::Arguments),
    Study(study::Arguments),
    Advise(Box<advise::Arguments>),
    Lab(lab::Arguments),
    Compare(Box<compare::Arguments>),
    Top(top::Arguments),
    Trace(trace::Arguments),
    Profiles(profiles::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    #[command(name = kernel::INIT_ARGUMENT, hide = true)]
    KernelInit(kernel_init::Arguments),
}

/// Runs the given subcommand; `whole` is the definition of the complete command line.
pub(crate) fn run(command: Command, whole: fn() -> clap::Command) -> Outcome {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Listen(arguments) => listen::run(&arguments),
        Command::Connect(arguments) => connect::run(&arguments),
        Command::Identity(arguments) => identity::run(&arguments),
        Command::Perf(arguments) => perf::run(arguments),
        Command::Emulate(arguments) => emulate::run(&arguments),
        Command::Proxy(arguments) => proxy::run(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Study(arguments) => study::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Profiles(arguments) => profiles::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, whole()),
        Command::Man(arguments) => man::run(&arguments, whole()),
        Command::KernelInit(_) => kernel_init::run(),
    }
}
