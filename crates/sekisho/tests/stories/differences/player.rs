//! Plays a story on one store and writes down every answer, with nodes by their place in the story.

use std::sync::Arc;

use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed, Ended};
use sekisho_core::job::{Job, Lane, Lease, NewJob, delivery_key};
use sekisho_core::{Epoch, Seq};
use sekisho_store::conformance::chain::fault;
use sekisho_store::{Joined, NodeRecord, Pulse, Store};

use super::{Draft, NOW, ORDERED, Set, Verb, Which};

pub struct Player {
    store: Arc<dyn Store>,
    epochs: Vec<Epoch>,
    /// With what their jobs are about.
    leases: Vec<(Lease, Option<Seq>)>,
}

impl Player {
    pub async fn play(store: Arc<dyn Store>, story: &[Verb]) -> Vec<String> {
        let mut player = Self { store, epochs: Vec::new(), leases: Vec::new() };
        let mut answers = Vec::new();
        for verb in story {
            answers.push(player.answer(verb.clone()).await);
        }
        answers
    }

    async fn answer(&mut self, verb: Verb) -> String {
        let store = Arc::clone(&self.store);
        match verb {
            Verb::Join => {
                let Joined { epoch, floor } = store.join(NOW).await.unwrap();
                assert!(self.epochs.iter().all(|earlier| *earlier < epoch), "epochs rise");
                self.epochs.push(epoch);
                format!("{floor:?}")
            }
            Verb::Beat { node, n } => match store.beat(self.epoch(node), n).await.unwrap() {
                Pulse::Ended => "ended".into(),
                Pulse::Alive { peers, .. } => {
                    let mut peers: Vec<_> =
                        peers.iter().map(|peer| (self.place_of(peer.epoch), peer.beat)).collect();
                    peers.sort_unstable();
                    format!("{peers:?}")
                }
            },
            Verb::End { node, n } => format!("{:?}", store.end(self.epoch(node), n).await.unwrap()),
            Verb::Leave(node) => format!("{:?}", store.leave(self.epoch(node)).await.unwrap()),
            Verb::Admit { rows, keep } => self.admit(rows, keep).await,
            Verb::Known(keys) => format!("{:?}", store.known(&keys).await.unwrap()),
            Verb::Claim { node, wants, now } => {
                let mut jobs = store.claim(self.epoch(node), wants, now).await.unwrap();
                // Each lane's own are in order; the lanes are in none.
                jobs.sort_by(|one, other| one.lane.cmp(&other.lane));
                self.take(jobs)
            }
            Verb::Commit(sets) => self.commit(sets).await,
            Verb::Start(which) => format!("{:?}", store.start(self.leases(which)).await.unwrap()),
            Verb::Release(which) => format!("{:?}", store.release(self.leases(which)).await.unwrap()),
            Verb::Owned(node) => {
                let mut leases = store.owned(self.epoch(node), Seq::ZERO).await.unwrap();
                leases.sort_unstable();
                format!("{:?}", leases.iter().map(|lease| (lease.job, lease.attempt)).collect::<Vec<_>>())
            }
            Verb::Adopt(which) => {
                let leases = self.leases(which);
                // The same lease twice is the same wish; two runs of one job would be two.
                let first = |lease: &Lease| leases.iter().find(|other| other.job == lease.job) == Some(lease);
                self.adopt(leases.iter().copied().filter(first).collect()).await
            }
            Verb::AdoptOwned(node) => {
                let own = store.owned(self.epoch(node), Seq::ZERO).await.unwrap();
                self.adopt(own).await
            }
            Verb::Sweep { limit, suspect_after } => {
                format!("{:?}", store.sweep(limit, suspect_after).await.unwrap())
            }
            Verb::Lanes => {
                let mut lanes = store.lanes().await.unwrap();
                lanes.retain(|(lane, _)| *lane != Lane::to_route(ORDERED) && *lane != Lane::suspect());
                lanes.sort_unstable();
                format!("{lanes:?}")
            }
            Verb::LoadEvents(seqs) => format!("{:?}", store.load_events(seqs).await.unwrap()),
            Verb::Revive(jobs, act) => format!("{:?}", store.retry(jobs, act).await.unwrap()),
            Verb::Discard(jobs, act) => format!("{:?}", store.discard(jobs, act).await.unwrap()),
            Verb::Cancel(jobs, act) => format!("{:?}", store.cancel(jobs, act).await.unwrap()),
            Verb::Replay(events, settle, act) => {
                format!("{:?}", store.replay(events, settle, act).await.unwrap())
            }
            Verb::Load(names, keys) => format!("{:?}", store.load(names, keys).await.unwrap()),
            Verb::FindBranches(prefix) => format!("{:?}", store.find_branches(prefix, 100).await.unwrap()),
            Verb::FindStates(filter) => format!("{:?}", store.find_states(filter).await.unwrap()),
            Verb::FindSums(account) => format!("{:?}", store.find_sums(account).await.unwrap()),
            Verb::FindLines(filter) => format!("{:?}", store.find_lines(filter).await.unwrap()),
            Verb::FindAudit(filter) => format!("{:?}", store.find_audit(filter).await.unwrap()),
            // Which entries share a link is a store's own affair; that they hang together is not.
            Verb::FindFault => format!("{:?}", fault(&store).await),
            Verb::Reject(rejections) => format!("{:?}", store.reject(rejections).await.unwrap()),
            Verb::Upkeep => format!("{:?}", store.upkeep(NOW).await.unwrap()),
            Verb::CountHour(hour) => format!("{:?}", store.count_hour(hour).await.unwrap()),
            Verb::Forget { before, after, limit } => {
                format!("{:?}", store.forget(before, after, limit).await.unwrap())
            }
            Verb::FindEvents(filter) => format!("{:?}", store.find_events(filter).await.unwrap()),
            Verb::FindEvent(seq) => format!("{:?}", store.find_event(seq).await.unwrap()),
            Verb::FindSeq(source, id) => format!("{:?}", store.find_seq(&source, &id).await.unwrap()),
            Verb::FindDead(filter) => format!("{:?}", store.find_dead(filter).await.unwrap()),
            Verb::FindDeadGroups(filter) => format!("{:?}", store.find_dead_groups(filter).await.unwrap()),
            Verb::FindWork => format!("{:?}", store.find_work().await.unwrap()),
            Verb::FindNodes => {
                let nodes = store.find_nodes().await.unwrap().into_iter();
                let place = |node: NodeRecord| Epoch(self.place_of(node.epoch) as i64);
                let nodes = nodes.map(|node| NodeRecord { epoch: place(node), ..node });
                format!("{:?}", nodes.collect::<Vec<_>>())
            }
            Verb::FindMessage(job) => format!("{:?}", store.find_message(job).await.unwrap()),
            Verb::FindMessages(event) => format!("{:?}", store.find_messages(event).await.unwrap()),
            Verb::FindDeliveries(filter) => format!("{:?}", store.find_deliveries(filter).await.unwrap()),
            Verb::FindDeliveryCounts(events) => {
                format!("{:?}", store.find_delivery_counts(events).await.unwrap())
            }
            Verb::FindAttempts(job) => format!("{:?}", store.find_attempts(job).await.unwrap()),
            Verb::FindMoney(from, to) => format!("{:?}", store.find_money(from, to).await.unwrap()),
            Verb::FindCounts(from, to) => format!("{:?}", store.find_counts(from, to).await.unwrap()),
            Verb::FindRejections(filter) => format!("{:?}", store.find_rejections(filter).await.unwrap()),
        }
    }

    async fn admit(&mut self, rows: Vec<Arrival>, keep: Option<usize>) -> String {
        let keep = keep.map(|node| self.epoch(node));
        let seqs: Vec<_> = rows.iter().map(|row| row.seq).collect();
        let answers: Vec<Admission> = self.store.admit(rows.into(), keep).await.unwrap();
        for (seq, answer) in seqs.into_iter().zip(&answers) {
            if let (Some(epoch), Admission::Admitted) = (keep, answer) {
                self.leases.push((Lease { job: seq, epoch, attempt: 1 }, Some(seq)));
            }
        }
        format!("{answers:?}")
    }

    async fn commit(&mut self, sets: Vec<Set>) -> String {
        let sets: Vec<_> = sets.into_iter().filter_map(|set| self.change_set(set)).collect();
        let answers = self.store.commit(sets.clone()).await.unwrap();
        for (set, answer) in sets.into_iter().zip(&answers) {
            let Committed::Applied { repeated } = answer else { continue };
            for job in set.jobs.into_iter().filter(|job| !repeated.contains(&job.id)) {
                if let Some(epoch) = job.owner {
                    self.leases.push((Lease::born(job.id, epoch), job.event));
                }
            }
            for event in set.events.into_iter().filter(|event| !repeated.contains(&event.seq)) {
                if let Some(epoch) = set.keep {
                    self.leases.push((Lease::born(event.seq, epoch), Some(event.seq)));
                }
            }
        }
        format!("{answers:?}")
    }

    /// Nothing when no lease was given yet.
    fn change_set(&self, set: Set) -> Option<ChangeSet> {
        let mut about = None;
        let mut ends = Vec::new();
        for ending in set.ends {
            let (lease, event) = self.lease(ending.which)?;
            about = about.or(event);
            ends.push(Ended { lease, end: ending.end, attempt: ending.attempt, about: ending.about });
        }
        let job = |Draft { job, delivery, owner }: Draft| {
            let owner = owner.map(|node| self.epoch(node));
            let (event, key) = match delivery.zip(about) {
                Some((again, event)) => (Some(event), Some(delivery_key(event, &job.lane, again))),
                None => (None, job.key),
            };
            NewJob { event, key, owner, ..job }
        };
        let jobs = set.jobs.into_iter().map(job).collect();
        Some(ChangeSet {
            at: set.at,
            ends,
            jobs,
            writes: set.writes,
            names: set.names,
            postings: set.postings,
            audit: set.audit,
            events: set.events,
            keep: set.keep.map(|node| self.epoch(node)),
        })
    }

    async fn adopt(&mut self, leases: Vec<Lease>) -> String {
        let mut jobs = self.store.adopt(leases).await.unwrap();
        jobs.sort_by_key(|job| job.lease);
        self.take(jobs)
    }

    fn take(&mut self, jobs: Vec<Job>) -> String {
        self.leases.extend(jobs.iter().map(|job| (job.lease, job.event)));
        let place = |lease: Lease| Lease { epoch: Epoch(self.place_of(lease.epoch) as i64), ..lease };
        let jobs = jobs.into_iter().map(|job| Job { lease: place(job.lease), ..job });
        format!("{:?}", jobs.collect::<Vec<_>>())
    }

    fn epoch(&self, node: usize) -> Epoch {
        self.epochs[node % self.epochs.len()]
    }

    fn place_of(&self, epoch: Epoch) -> usize {
        self.epochs.iter().position(|own| *own == epoch).expect("a node of this story")
    }

    fn leases(&self, which: Vec<Which>) -> Vec<Lease> {
        which.into_iter().filter_map(|which| self.lease(which)).map(|(lease, _)| lease).collect()
    }

    fn lease(&self, which: Which) -> Option<(Lease, Option<Seq>)> {
        let given = self.leases.len();
        let (lease, event) = *self.leases.get(given.checked_sub(1 + which.lease % given.max(1))?)?;
        let epoch = if which.other_node { self.epoch(self.place_of(lease.epoch) + 1) } else { lease.epoch };
        Some((Lease { attempt: lease.attempt + which.attempt, epoch, ..lease }, event))
    }
}
