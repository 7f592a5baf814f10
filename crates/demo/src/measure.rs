//! What a process costs, as the kernel tells it in `/proc`, and a few words for printing figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Linux reports process times in these units to user space, whatever the kernel's own tick.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time of one process with all its threads, and of the children it has waited for.
pub fn cpu_time(pid: u32) -> Option<Duration> {
    stat(pid).map(|stat| stat.cpu)
}

/// CPU time of a process and all its descendants, ended and waited-for ones included.
pub fn cpu_time_of_tree(root: u32) -> Option<Duration> {
    let mut total = stat(root)?.cpu;
    let mut children: BTreeMap<u32, Vec<(u32, Duration)>> = BTreeMap::new();
    for pid in pids() {
        if let Some(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push((pid, stat.cpu));
        }
    }
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        // Taken out, so that a reused pid can't send the walk in circles.
        for (pid, cpu) in children.remove(&parent).unwrap_or_default() {
            total += cpu;
            open.push(pid);
        }
    }
    Some(total)
}

/// Memory in KiB with shared pages counted by share: what the machine would get back.
pub fn pss_kb(pid: u32) -> Option<u64> {
    field_kb(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?, "Pss:")
}

/// Memory in KiB that is in RAM, shared pages counted whole.
pub fn rss_kb(pid: u32) -> Option<u64> {
    field_kb(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?, "VmRSS:")
}

pub fn open_fds(pid: u32) -> Option<usize> {
    Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count())
}

/// Raises this process's limit of open files as far as it may go, and says how far that was.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let raised = setrlimit(Resource::Nofile, wanted).map_or(limit.current, |()| limit.maximum);
    // No limit is none.
    raised.unwrap_or(u64::MAX)
}

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds as milliseconds with the digits that mean something.
pub fn millis(micros: u64) -> String {
    let mut text = String::new();
    let ms = micros as f64 / 1000.0;
    let digits = if ms < 10.0 { 2 } else { usize::from(ms < 100.0) };
    write!(text, "{ms:.digits$} ms").expect("a string takes everything");
    text
}

struct Stat {
    parent: u32,
    cpu: Duration,
}

/// `/proc/PID/stat`, man 5 proc. The command in parentheses may hold anything, so fields count from its end.
fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    // utime, stime, cutime, cstime are fields 14 to 17 of the whole line.
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Stat { parent, cpu: Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND) })
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.parse().ok())
}

fn field_kb(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_files_and_time() {
        let me = std::process::id();
        assert!(pss_kb(me).is_some_and(|kb| kb > 100));
        assert!(rss_kb(me).is_some_and(|kb| kb > 100));
        assert!(open_fds(me).is_some_and(|count| count >= 3));
        let own = cpu_time(me);
        assert!(own.is_some() && cpu_time_of_tree(me) >= own);
        assert!(cpu_time(u32::MAX).is_none());
        assert!(raise_open_files() >= 3);
    }

    #[test]
    fn figures_print_for_people() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(millis(1_234), "1.23 ms");
        assert_eq!(millis(12_345), "12.3 ms");
        assert_eq!(millis(123_456), "123 ms");
    }
}
