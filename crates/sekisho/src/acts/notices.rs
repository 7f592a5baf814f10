//! Notices: written down before they are sent, and resent when a person asks.

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::post::{self, post};
use sekisho_core::notification::{Notice, ResendOrder, Suppression};
use sekisho_core::state::{Key, Kind, Wanted};
use sekisho_core::{Seq, Time};
use sekisho_store::Store;

use crate::env::Env;
use crate::refusal::Result;
use crate::transact::{Decision, transact, transact_in_steps};

/// Notices written down in one commit.
const PIECE: usize = 100;

/// Writes down those that are not there yet, and queues them; says how many. What is there already stays as it is.
pub async fn post_notices(
    store: &dyn Store,
    notices: &[Notice],
    at: Time,
    mut next_id: impl FnMut() -> Seq,
) -> Result<usize> {
    let mut posted = 0;
    for piece in notices.chunks(PIECE) {
        posted += transact(store, Wanted::names(piece.iter().map(post::name)), |known| -> Result<_> {
            let mut set = ChangeSet::nothing(at);
            let posted = post(&mut set, piece, known, &mut next_id);
            Ok((set, posted))
        })
        .await?;
    }
    Ok(posted)
}

/// Sends a notice once more, to its old address or another.
pub async fn resend(
    store: &dyn Store,
    env: &Env,
    id: &str,
    to: Option<MailAddress>,
    actor: &Actor<'_>,
) -> Result<Notice> {
    let (resend, key) = (ResendOrder { id, to: to.as_ref() }, Key::new(Kind::Notice, id));
    let job = env.fresh_seq(actor.at);
    let mut asked = None;
    let resent = transact_in_steps(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let known = loaded.read::<Notice>(&key)?;
        let address = resend.address(known.as_ref().map(|known| &known.value), actor)?;
        let suppression = address.as_ref().map(Suppression::key);
        if let Some(wanted) = suppression.clone().filter(|wanted| asked.as_ref() != Some(wanted)) {
            asked = Some(wanted.clone());
            return Ok(Decision::Load(Wanted::keys([wanted])));
        }
        let suppression = suppression.and_then(|key| loaded.states.get(&key)).and_then(Suppression::read);
        let (set, resent) = resend.resend(known, suppression.as_ref(), job, actor)?;
        Ok(Decision::Write(set, resent))
    });
    let resent = resent.await?;
    // Whoever waited for a person among the dead letters has got one.
    if let Some(old) = resent.old_job {
        store.discard(vec![old], actor.act(&format!("sent again as {}", job.as_message()))).await?;
    }
    Ok(resent.notice)
}
