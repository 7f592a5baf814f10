use sekisho_store::{Access, Store, conformance::Arrivals};
use std::sync::Arc;
use std::time::Instant;
fn cpu() -> (f64, f64) {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (f[11].parse::<f64>().unwrap() / 100.0, f[12].parse::<f64>().unwrap() / 100.0)
}
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::path::PathBuf::from(std::env::args().nth(1).unwrap());
    let batch: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let total: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let store =
        sekisho_store::sqlite::open(&path, Access::Serve { allow_unsafe_durability: false }).await.unwrap();
    let body = bytes::Bytes::from(vec![b'a'; 3000]);
    let mut new = Arrivals::new(1);
    let mut batches: Vec<Arc<[_]>> = Vec::new();
    for n in 0..total / batch {
        batches.push(
            (0..batch)
                .map(|m| {
                    let mut a = new.event(&format!("e{n}-{m}"));
                    a.key = sekisho_core::event::DedupeKey::new(
                        "shop",
                        &a.event_id,
                        Some(sekisho_core::event::Created {
                            at: sekisho_core::Time::from_seconds(1_780_000_000 + (n * batch / 8000) as i64),
                            immutable: true,
                        }),
                    );
                    a.body = body.clone();
                    a
                })
                .collect(),
        );
    }
    let (start, c) = (Instant::now(), cpu());
    for b in batches {
        store.admit(b).await.unwrap();
    }
    let d = cpu();
    println!(
        "batch {batch}: {:.0}/s  user {:.1} us sys {:.1} us per event",
        total as f64 / start.elapsed().as_secs_f64(),
        (d.0 - c.0) * 1e6 / total as f64,
        (d.1 - c.1) * 1e6 / total as f64
    );
}
