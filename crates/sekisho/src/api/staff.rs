//! Staff: who works for a tenant and is reminded of its deadlines, under the ids that the app uses.

use sekisho_core::directory::Register;

use super::endpoint::{Endpoint, Method, Success, schema};
use super::members;
use super::params::{ADDRESSES, BEFORE, LIMIT, TENANT, WHOSE};
use crate::config::Scope;
use crate::types::{Dated, Deleted, NewStaff, Page, Staff};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/staff",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Staff, by tenant and id, the last first",
        parameters: &[TENANT, ADDRESSES, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Staff>>>,
        success: Success::Done,
        run: |call| Box::pin(members::list(Register::Staff, call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/staff",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a staff member, or replace all that is said of one: what is left out is empty from then on, \
                  notifications are on and threshold_days is 30. The tenant must be there",
        parameters: &[],
        query: None,
        body: Some(schema::<NewStaff>),
        answer: schema::<Staff>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(members::create(Register::Staff, call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/staff/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One staff member",
        parameters: &[WHOSE, ADDRESSES],
        query: None,
        body: None,
        answer: schema::<Dated<Staff>>,
        success: Success::Done,
        run: |call| Box::pin(members::show(Register::Staff, call)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/staff/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a staff member: its fields are deleted, the audit log is kept",
        parameters: &[WHOSE],
        query: None,
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(members::delete(Register::Staff, call)),
    },
];
