//! Customers: who pays, under the ids that the app uses. Each belongs to one tenant, or to none.

use sekisho_core::directory::Register;

use super::endpoint::{Endpoint, Method, Success, schema};
use super::members;
use super::params::{ADDRESSES, BEFORE, LIMIT, TENANT, WHOSE};
use crate::config::Scope;
use crate::types::{Customer, Dated, Deleted, NewCustomer, Page};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/customers",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Customers, by tenant and id, the last first",
        parameters: &[TENANT, ADDRESSES, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Customer>>>,
        success: Success::Done,
        run: |call| Box::pin(members::list(Register::Customers, call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/customers",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a customer, or replace all its fields: what is left out is empty from then on",
        parameters: &[],
        query: None,
        body: Some(schema::<NewCustomer>),
        answer: schema::<Customer>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(members::create(Register::Customers, call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/customers/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One customer",
        parameters: &[WHOSE, ADDRESSES],
        query: None,
        body: None,
        answer: schema::<Dated<Customer>>,
        success: Success::Done,
        run: |call| Box::pin(members::show(Register::Customers, call)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/customers/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a customer; what was paid stays, without a link to it",
        parameters: &[WHOSE],
        query: None,
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(members::delete(Register::Customers, call)),
    },
];
