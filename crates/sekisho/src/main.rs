//! The `sekisho` program.

use std::process::ExitCode;

/// Small, and good with memory that one thread allocates and another frees, which is what a gateway does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Two megabytes for the first bytes of each thread: idle, that would be a third of all memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    sekisho::cli::main()
}
