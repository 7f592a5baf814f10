//! Whom somebody asks for, by whatever is at hand: a mail address, a customer, a member of staff, a payment, a notice. And
//! what is known of them that decides whether mail reaches them.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::directory::{Customer, Register, Staff, own_id};
use sekisho_core::language::Language;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::Suppression;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::de::DeserializeOwned;

use crate::acts;
use crate::queries;

/// What was asked for.
#[derive(Debug)]
pub enum AskedFor {
    Address(MailAddress),
    Notice(String),
    Payment {
        id: String,
        since: Time,
    },
    /// Somebody we know, but not where to write to them.
    Unreachable,
    /// An id that somebody has in more than one tenant.
    Several,
    Nothing,
}

/// Somebody of the directory.
#[derive(Clone, Debug)]
pub struct FoundPerson {
    pub is_staff: bool,
    /// What leads to this very person: tenant and id.
    pub key: String,
    pub id: String,
    pub name: Option<String>,
    pub tenant: Option<String>,
    pub language: Option<&'static str>,
    pub address: Option<MailAddress>,
    pub is_off: bool,
}

/// All that is known beside the notices.
#[derive(Debug)]
pub struct Directory {
    pub asked: AskedFor,
    pub people: Vec<FoundPerson>,
    /// Only so many of each list were looked through; 0 is: none had to be, or all were.
    pub looked: usize,
    pub suppression: Option<Suppression>,
}

pub async fn find(store: &dyn Store, text: &str) -> acts::Result<Directory> {
    let (asked, called) = understand(store, text).await?;
    let mut known = Directory { people: called, asked, looked: 0, suppression: None };
    if let AskedFor::Address(address) = &known.asked {
        known.suppression = queries::suppression(store, address).await?;
        if known.people.is_empty() {
            (known.people, known.looked) = people(store, address).await?;
        }
    }
    Ok(known)
}

async fn understand(store: &dyn Store, text: &str) -> acts::Result<(AskedFor, Vec<FoundPerson>)> {
    if let Ok(address) = text.parse() {
        return Ok((AskedFor::Address(address), Vec::new()));
    }
    if queries::notice(store, text).await?.is_some() {
        return Ok((AskedFor::Notice(text.to_owned()), Vec::new()));
    }
    let people = people_called(store, text).await?;
    match &people[..] {
        [] => {}
        [person] => {
            let asked = person.address.clone().map_or(AskedFor::Unreachable, AskedFor::Address);
            return Ok((asked, people));
        }
        _ => return Ok((AskedFor::Several, people)),
    }
    let payment = queries::payments_by_reference(store, text, None).await?.into_iter().next();
    let asked = payment.map_or(AskedFor::Nothing, |payment| AskedFor::Payment {
        since: payment.created_at,
        id: payment.key.id,
    });
    Ok((asked, Vec::new()))
}

/// Who has this id, one in each tenant: a customer, or else a member of staff. `TENANT/ID` is one of them.
async fn people_called(store: &dyn Store, text: &str) -> acts::Result<Vec<FoundPerson>> {
    let mut people = BTreeMap::new();
    for register in [Register::Customers, Register::Staff] {
        let states = if text.contains('/') {
            let key = Key::new(register.kind(), text);
            store.load(Vec::new(), vec![key]).await?.states.into_values().collect()
        } else {
            queries::every_of_id(store, register, text).await?
        };
        for person in states.iter().filter(|state| state.is_shown()).filter_map(person) {
            people.entry(person.key.clone()).or_insert(person);
        }
    }
    Ok(people.into_values().collect())
}

/// Who has this address, among the newest of each list; and how many were looked at, if there are more.
async fn people(store: &dyn Store, address: &MailAddress) -> acts::Result<(Vec<FoundPerson>, usize)> {
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

fn person(state: &State) -> Option<FoundPerson> {
    fn read<T: DeserializeOwned>(state: &State) -> Option<T> {
        serde_json::from_str(&state.facts).ok()
    }
    let (key, id) = (state.key.id.clone(), own_id(&state.key).to_owned());
    if state.key.kind == Kind::Staff {
        let staff: Staff = read(state)?;
        return Some(FoundPerson {
            is_staff: true,
            key,
            id,
            name: staff.name(),
            is_off: !staff.notifications,
            tenant: Some(staff.tenant),
            language: staff.language.map(Language::name),
            address: Some(staff.email),
        });
    }
    let customer: Customer = read(state)?;
    Some(FoundPerson {
        is_staff: false,
        key,
        id,
        name: customer.name,
        tenant: customer.tenant,
        language: customer.language.map(Language::name),
        address: customer.email,
        is_off: false,
    })
}
