//! How much one order may touch, and what it must say for itself: an order that selects nothing is refused, never taken
//! for "all"; one that selects much is bounded.

use crate::time::Time;

/// Most dead letters or events that one order touches.
pub const SELECT_MAX: usize = 100_000;
/// Most characters of a reason.
pub const REASON_MAX: usize = 500;

/// What is wrong with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionRefusal {
    #[error("specify ids, a filter or `all` (--all)")]
    Nothing,
    #[error("ids, a filter and all exclude each other: write one of them")]
    SeveralWays,
    #[error("{0} ids are too many; at most {SELECT_MAX}")]
    TooMany(usize),
    #[error("the reason is longer than {REASON_MAX} characters")]
    LongReason,
    #[error("a reason is required to discard; it is recorded in the audit log")]
    NoReason,
}

/// Whether an order says in exactly one way what it is about: by ids, by a filter, or all.
pub fn check(ids: usize, is_filtered: bool, all: bool) -> Result<(), SelectionRefusal> {
    match u8::from(ids > 0) + u8::from(is_filtered) + u8::from(all) {
        0 => Err(SelectionRefusal::Nothing),
        1 if ids > SELECT_MAX => Err(SelectionRefusal::TooMany(ids)),
        1 => Ok(()),
        _ => Err(SelectionRefusal::SeveralWays),
    }
}

/// The reason as it is recorded.
pub fn check_reason(reason: &str) -> Result<String, SelectionRefusal> {
    let reason = reason.trim();
    if reason.chars().count() > REASON_MAX {
        return Err(SelectionRefusal::LongReason);
    }
    Ok(reason.to_owned())
}

/// The reason of a discard: needed, unless nothing is done yet.
pub fn check_discard(reason: &str, dry_run: bool) -> Result<String, SelectionRefusal> {
    let reason = check_reason(reason)?;
    if reason.is_empty() && !dry_run { Err(SelectionRefusal::NoReason) } else { Ok(reason) }
}

/// Where a look ends that found this as the newest, whichever clock stamped it.
pub const fn just_after(newest: Time) -> Time {
    newest.plus_ms(1)
}

/// The end of an order that was looked at until a moment: its own, if that is earlier.
pub fn earlier(own: Option<Time>, until: Time) -> Option<Time> {
    Some(own.map_or(until, |own| own.min(until)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b4_an_order_says_in_one_way_what_it_is_about() {
        assert_eq!(check(0, false, false), Err(SelectionRefusal::Nothing));
        for (ids, is_filtered, all) in [(1, true, false), (1, false, true), (0, true, true), (9, true, true)]
        {
            assert_eq!(check(ids, is_filtered, all), Err(SelectionRefusal::SeveralWays));
        }
        for (ids, is_filtered, all) in [(SELECT_MAX, false, false), (0, true, false), (0, false, true)] {
            assert_eq!(check(ids, is_filtered, all), Ok(()));
        }
        assert_eq!(check(SELECT_MAX + 1, false, false), Err(SelectionRefusal::TooMany(SELECT_MAX + 1)));
    }

    #[test]
    fn b4_a_reason_is_short_and_needed_to_discard() {
        assert_eq!(check_reason(" test data\n").as_deref(), Ok("test data"));
        assert_eq!(
            check_reason(&"あ".repeat(REASON_MAX)).map(|reason| reason.chars().count()),
            Ok(REASON_MAX)
        );
        assert_eq!(check_reason(&"あ".repeat(REASON_MAX + 1)), Err(SelectionRefusal::LongReason));
        assert_eq!(check_discard("  \n", false), Err(SelectionRefusal::NoReason));
        assert_eq!(check_discard("", true).as_deref(), Ok(""), "no reason is needed to look");
    }

    #[test]
    fn b4_nobodys_own_end_is_moved_back() {
        let (early, late) = (Time::from_ms(1), Time::from_ms(2));
        assert_eq!(earlier(Some(early), late), Some(early));
        assert_eq!(earlier(Some(late), early), Some(early));
        assert_eq!(earlier(None, late), Some(late));
        assert_eq!(just_after(early), late);
    }
}
