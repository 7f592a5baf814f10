//! Events by hour as bars: where each piece lies on a plane of its own units. The page stretches it to its width, so
//! labels stand beside it, not in it.

use super::figures::{DayBar, Hour};
use crate::view::words::Tone;

/// Units of an hour, of a bar in it, and of the whole height.
const SLOT: f64 = 10.0;
const BAR: f64 = 7.0;
const HEIGHT: f64 = 100.0;

pub struct Chart {
    pub width: f64,
    pub height: f64,
    /// What the top stands for.
    pub top: i64,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub hour: Hour,
    pub slot_x: f64,
    pub slot_width: f64,
    /// From the bottom up.
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub class: &'static str,
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Chart {
    pub fn of(day: &DayBar) -> Self {
        let largest = day.hours.iter().map(|hour| hour.tallied.all()).max().unwrap_or_default();
        let top = round_up(largest);
        let bars = day.hours.iter().enumerate().map(|(n, hour)| Bar::of(*hour, n, top));
        Self { width: SLOT * day.hours.len() as f64, height: HEIGHT, top, bars: bars.collect() }
    }
}

impl Bar {
    fn of(hour: Hour, n: usize, top: i64) -> Self {
        let slot_x = n as f64 * SLOT;
        let mut bottom = HEIGHT;
        let mut piece = |(tone, events): (Tone, i64)| {
            let height = events as f64 * HEIGHT / top as f64;
            bottom -= height;
            let x = slot_x + (SLOT - BAR) / 2.0;
            Piece { class: tone.class(), x, y: bottom, width: BAR, height }
        };
        let tallied = hour.tallied;
        let stack = [
            (Tone::Good, tallied.success),
            (Tone::Plain, tallied.skipped),
            (Tone::Wait, tallied.received),
            (Tone::Bad, tallied.failed),
        ];
        let pieces = stack.into_iter().filter(|(_, events)| *events > 0).map(&mut piece).collect();
        Self { hour, slot_x, slot_width: SLOT, pieces }
    }
}

/// The next number that reads well, and whose half does: 2, 4, 6, 8, 12, 16, 20, 40, …
fn round_up(number: i64) -> i64 {
    let mut unit: i64 = 1;
    loop {
        for step in [2, 4, 6, 8, 12, 16] {
            if number <= unit.saturating_mul(step) {
                return unit.saturating_mul(step);
            }
        }
        unit = unit.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::time::hour_of;
    use sekisho_store::{Count, Status};

    use super::super::range::OverviewRange;
    use super::*;

    #[test]
    fn h1_the_axis_ends_at_a_number_that_halves_well() {
        for (number, top) in [
            (0, 2),
            (1, 2),
            (3, 4),
            (5, 6),
            (11, 12),
            (17, 20),
            (21, 40),
            (99, 120),
            (1_053, 1_200),
            (1_700, 2_000),
        ] {
            assert_eq!(round_up(number), top, "{number}");
            assert_eq!(round_up(number) % 2, 0);
        }
        assert_eq!(round_up(i64::MAX), i64::MAX);
    }

    #[test]
    fn h1_the_pieces_of_a_bar_stand_on_each_other_and_within_the_chart() {
        let now = Time::from_ms(1_780_000_000_000);
        let count = |status, events| Count {
            hour: hour_of(now),
            source: "s".into(),
            event_type: "t".into(),
            status,
            events,
        };
        let counts = [count(Status::Success, 10), count(Status::Received, 5), count(Status::Failed, 5)];
        let chart = Chart::of(&DayBar::of(&counts, OverviewRange::Day, now));
        assert_eq!((chart.top, chart.bars.len()), (20, 24));
        let last = &chart.bars[23];
        let shown: Vec<_> = last.pieces.iter().map(|piece| (piece.class, piece.y, piece.height)).collect();
        assert_eq!(shown, [("good", 50.0, 50.0), ("wait", 25.0, 25.0), ("bad", 0.0, 25.0)]);
        assert!(
            last.pieces.iter().all(|piece| piece.x >= last.slot_x && piece.x + piece.width <= chart.width)
        );
        assert!(chart.bars[..23].iter().all(|bar| bar.pieces.is_empty()));
    }
}
