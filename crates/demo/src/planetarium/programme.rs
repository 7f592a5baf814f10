//! The shows, the visitors, and what each of them would do; all of it from the seed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rng::Rng;
use crate::traffic::run_of;

/// One visitor for so many payments of the shop.
const PAYMENTS_PER_VISITOR: u32 = 10;
const VISITORS_MIN: u32 = 40;
/// Customers' pages take 120 requests a minute of one address, and here they all have one.
const VISITORS_MAX: u32 = 400;
const VISITORS_PER_SHOW: usize = 20;
const PLACES: u32 = 10;
/// For one place, in yen.
const PRICES: [i64; 4] = [1_500, 2_400, 3_600, 4_800];
const TITLES: [&str; 6] = ["冬の星座", "天の川", "月への旅", "Aurora", "Comets", "The southern sky"];
/// When the last visitor comes.
const DOORS_OPEN: Duration = Duration::from_secs(10);
/// What keeps its keys apart from the shop's.
const OWN_SEED: u64 = 0x504c_414e;

/// What a visitor does who gets a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VisitorCourse {
    /// Pays, and gets the video.
    Keeps,
    /// Pays; the first try to make the video fails.
    FailsOnce,
    /// Pays; the video can't be made.
    NeverMade,
    /// Never pays.
    Abandons,
    /// Pays when the place is no longer kept.
    PaysLate,
    /// Pays, and cancels on the order's page.
    Cancels,
}

impl VisitorCourse {
    /// Of the visitors of one show.
    const ALL: [(Self, usize); 6] = [
        (Self::Keeps, 7),
        (Self::FailsOnce, 3),
        (Self::NeverMade, 3),
        (Self::Abandons, 3),
        (Self::PaysLate, 2),
        (Self::Cancels, 2),
    ];

    /// How long the places are to be held, in seconds. Who pays in time has time enough, whatever happens to the server.
    pub const fn hold_s(self) -> u64 {
        match self {
            Self::Abandons | Self::PaysLate => 2,
            Self::Keeps | Self::FailsOnce | Self::NeverMade | Self::Cancels => 1_800,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomeShow {
    pub id: String,
    pub places: u32,
    pub title: &'static str,
    pub price: i64,
    pub starts_at: String,
}

impl DomeShow {
    pub(super) fn slot(&self) -> Value {
        json!({
            "id": self.id,
            "capacity": self.places,
            "title": self.title,
            "starts_at": self.starts_at,
            "livemode": false,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowVisitor {
    /// Which of the shows.
    pub show: usize,
    pub quantity: u32,
    pub course: VisitorCourse,
    pub comes_after: Duration,
    /// Who finds the show sold out tries again after these.
    pub tries_after: Vec<Duration>,
    /// Order number.
    pub reference: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programme {
    pub seed: u64,
    pub shows: Vec<DomeShow>,
    pub visitors: Vec<ShowVisitor>,
}

impl Programme {
    /// Beside a shop with so many payments.
    pub fn of(seed: u64, payments: u32, starts_at: &str) -> Self {
        let mut rng = Rng::new(seed ^ OWN_SEED);
        let run = run_of(rng.next_u64());
        let wanted = (payments / PAYMENTS_PER_VISITOR).clamp(VISITORS_MIN, VISITORS_MAX) as usize;
        let (mut shows, mut visitors) = (Vec::new(), Vec::new());
        for n in 0..wanted.div_ceil(VISITORS_PER_SHOW) {
            let title = TITLES[n % TITLES.len()];
            let price = *rng.pick(&PRICES).expect("there are prices");
            let id = format!("dome-1:{:02}", n + 1);
            shows.push(DomeShow { id, places: PLACES, title, price, starts_at: starts_at.to_owned() });
            for course in courses(&mut rng) {
                let ms = |rng: &mut Rng, low, high| Duration::from_millis(rng.between(low, high));
                visitors.push(ShowVisitor {
                    show: n,
                    quantity: if rng.chance(0.3) { 2 } else { 1 },
                    course,
                    comes_after: ms(&mut rng, 0, DOORS_OPEN.as_millis() as u64),
                    tries_after: vec![ms(&mut rng, 1_500, 3_000), ms(&mut rng, 2_000, 4_000)],
                    reference: format!("PL-{run}-{:04}", visitors.len()),
                });
            }
        }
        Self { seed, shows, visitors }
    }

    pub fn places(&self) -> u32 {
        self.shows.iter().map(|show| show.places).sum()
    }
}

/// Those of one show, in any order.
fn courses(rng: &mut Rng) -> Vec<VisitorCourse> {
    let mut left: Vec<_> =
        VisitorCourse::ALL.iter().flat_map(|&(course, times)| vec![course; times]).collect();
    let mut mixed = Vec::with_capacity(left.len());
    while !left.is_empty() {
        mixed.push(left.swap_remove(rng.below(left.len() as u64) as usize));
    }
    mixed
}
