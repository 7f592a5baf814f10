//! Subjects: what has deadlines, under the ids that the app uses. Each belongs to one tenant.

use sekisho_core::directory::Register;

use super::endpoint::{Endpoint, Method, Success, schema};
use super::members;
use super::params::{BEFORE, LIMIT, TENANT, WHOSE};
use crate::config::Scope;
use crate::types::{Dated, Deleted, NewSubject, Page, Subject};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/subjects",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Subjects, by tenant and id, the last first",
        parameters: &[TENANT, BEFORE, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<Dated<Subject>>>,
        success: Success::Done,
        run: |call| Box::pin(members::list(Register::Subjects, call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/subjects",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Enter a subject, or replace all its fields: what is left out is empty from then on. The tenant must be there",
        parameters: &[],
        query: None,
        body: Some(schema::<NewSubject>),
        answer: schema::<Subject>,
        success: Success::CreatedOnce,
        run: |call| Box::pin(members::create(Register::Subjects, call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/subjects/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One subject",
        parameters: &[WHOSE],
        query: None,
        body: None,
        answer: schema::<Dated<Subject>>,
        success: Success::Done,
        run: |call| Box::pin(members::show(Register::Subjects, call)),
    },
    Endpoint {
        method: Method::Delete,
        path: "/v1/subjects/{id}",
        scope: Some(Scope::Write),
        for_tenants: true,
        summary: "Delete a subject: its fields are deleted, the audit log is kept",
        parameters: &[WHOSE],
        query: None,
        body: None,
        answer: schema::<Deleted>,
        success: Success::Done,
        run: |call| Box::pin(members::delete(Register::Subjects, call)),
    },
];
