//! Whom somebody asks for, by whatever is at hand: a mail address, a customer, a member of staff, a payment, a notice. And
//! what is known of them that decides whether mail reaches them.

use sekisho_core::Time;
use sekisho_core::notification::directory::{Customer, Staff};
use sekisho_core::notification::{Language, MailAddress, Suppression};
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::de::DeserializeOwned;

use crate::transition;

/// What was asked for.
#[derive(Debug)]
pub enum Asked {
    Address(MailAddress),
    Notice(String),
    Payment {
        id: String,
        since: Time,
    },
    /// Somebody we know, but not where to write to them.
    Unreachable,
    Nothing,
}

/// Somebody of the directory.
#[derive(Clone, Debug)]
pub struct Person {
    pub is_staff: bool,
    pub id: String,
    pub name: Option<String>,
    pub tenant: Option<String>,
    pub language: Option<&'static str>,
    pub address: Option<MailAddress>,
    pub is_off: bool,
}

/// All that is known beside the notices.
#[derive(Debug)]
pub struct Known {
    pub asked: Asked,
    pub people: Vec<Person>,
    /// Only so many of each list were looked through; 0 is: none had to be, or all were.
    pub looked: usize,
    pub suppression: Option<Suppression>,
}

pub async fn find(store: &dyn Store, text: &str) -> transition::Result<Known> {
    let (asked, person) = understand(store, text).await?;
    let mut known = Known { people: person.into_iter().collect(), asked, looked: 0, suppression: None };
    if let Asked::Address(address) = &known.asked {
        known.suppression = transition::suppression(store, address).await?;
        if known.people.is_empty() {
            (known.people, known.looked) = people(store, address).await?;
        }
    }
    Ok(known)
}

async fn understand(store: &dyn Store, text: &str) -> transition::Result<(Asked, Option<Person>)> {
    if let Ok(address) = text.parse() {
        return Ok((Asked::Address(address), None));
    }
    if transition::notice(store, text).await?.is_some() {
        return Ok((Asked::Notice(text.to_owned()), None));
    }
    let keys = [Key::new(Kind::Customer, text), Key::new(Kind::Staff, text)];
    let states = store.load(Vec::new(), keys.to_vec()).await?.states;
    let person =
        keys.iter().filter_map(|key| states.get(key)).filter(|state| state.is_shown()).find_map(person);
    if let Some(person) = person {
        let asked = person.address.clone().map_or(Asked::Unreachable, Asked::Address);
        return Ok((asked, Some(person)));
    }
    let payment = transition::payments_by_reference(store, text, None).await?.into_iter().next();
    let asked = payment
        .map_or(Asked::Nothing, |payment| Asked::Payment { since: payment.created_at, id: payment.key.id });
    Ok((asked, None))
}

/// Who has this address, among the newest of each list; and how many were looked at, if there are more.
async fn people(store: &dyn Store, address: &MailAddress) -> transition::Result<(Vec<Person>, usize)> {
    let (mut people, mut looked) = (Vec::new(), 0);
    for kind in [Kind::Customer, Kind::Staff] {
        let states = store.find_states(StateFilter::all(kind, FIND_MAX)).await?;
        if states.len() == FIND_MAX {
            looked = FIND_MAX;
        }
        let known = states.iter().filter(|state| state.is_shown()).filter_map(person);
        people.extend(known.filter(|person| person.address.as_ref() == Some(address)));
    }
    Ok((people, looked))
}

fn person(state: &State) -> Option<Person> {
    fn read<T: DeserializeOwned>(state: &State) -> Option<T> {
        serde_json::from_str(&state.facts).ok()
    }
    let id = state.key.id.clone();
    if state.key.kind == Kind::Staff {
        let staff: Staff = read(state)?;
        return Some(Person {
            is_staff: true,
            id,
            name: staff.name(),
            is_off: !staff.notifications,
            tenant: Some(staff.tenant),
            language: staff.language.map(Language::name),
            address: Some(staff.email),
        });
    }
    let customer: Customer = read(state)?;
    Some(Person {
        is_staff: false,
        id,
        name: customer.name,
        tenant: customer.tenant,
        language: customer.language.map(Language::name),
        address: customer.email,
        is_off: false,
    })
}
