//! Tenants: whose customers and payments these are, under the ids that the app uses.

use sekisho_core::directory::Register;

use super::endpoint::{BEFORE, Endpoint, LIMIT, Success, Verb, schema};
use super::members;
use crate::config::Scope;
use crate::types::{Dated, Deleted, NewTenant, Page, Tenant};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Verb::Get,
        path: "/v1/tenants",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Tenants, by id, the highest first",
        parameters: &[BEFORE, LIMIT],
        body: None,
        answer: schema::<Page<Dated<Tenant>>>,
        success: Success::Done,
        run: |call| Box::pin(members::list(Register::Tenants, call)),
    },
    Endpoint {
        method: Verb::Post,
        path: "/v1/tenants",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Enter a tenant, or replace all its fields: what is left out is empty from then on",
        parameters: &[],
        body: Some(schema::<NewTenant>),
        answer: schema::<Tenant>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(members::create(Register::Tenants, call)),
    },
    Endpoint {
        method: Verb::Get,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One tenant",
        parameters: &[],
        body: None,
        answer: schema::<Dated<Tenant>>,
        success: Success::Done,
        run: |call| Box::pin(members::show(Register::Tenants, call)),
    },
    Endpoint {
        method: Verb::Delete,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Delete a tenant, and revoke its keys, which needs the widest scope that one of them has; what was paid stays, without a link to it",
        parameters: &[],
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(members::delete(Register::Tenants, call)),
    },
];
