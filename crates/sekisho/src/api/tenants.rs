//! Tenants: whose customers and payments these are, under the ids that the app uses.

use sekisho_core::directory::Register;

use super::endpoint::{Endpoint, Method, Success, schema};
use super::members;
use super::params::{BEFORE, LIMIT};
use crate::config::Scope;
use crate::types::{Dated, Deleted, NewTenant, Page, Tenant};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/tenants",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Tenants, by id, the highest first",
        parameters: &[BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Tenant>>>,
        success: Success::Done,
        run: |call| Box::pin(members::list(Register::Tenants, call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/tenants",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Enter a tenant, or replace all its fields: what is left out is empty from then on",
        parameters: &[],
        query: None,
        body: Some(schema::<NewTenant>),
        answer: schema::<Tenant>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(members::create(Register::Tenants, call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One tenant",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Dated<Tenant>>,
        success: Success::Done,
        run: |call| Box::pin(members::show(Register::Tenants, call)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/tenants/{id}",
        scope: Some(Scope::Write),
        for_tenants: false,
        summary: "Delete a tenant, and revoke its keys, which needs the widest scope that one of them has; what was paid stays, without a link to it",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(members::delete(Register::Tenants, call)),
    },
];
