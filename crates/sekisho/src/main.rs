//! The `sekisho` program.

use std::process::ExitCode;

/// Small, and good with memory that one thread allocates and another frees, which is what a gateway does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sekisho::cli::main()
}
