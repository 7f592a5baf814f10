//! How deep an expression may be and how long it may run.
//!
//! Depth is checked before anything recurses into the expression. Loops (`all`, `exists`, `map`, `filter`) are the only
//! way to run long, so each one's range passes through a meter, which charges for every round it is about to make. A
//! round that names more than its own element is charged for the whole body, as often, because that is what it may see.

use std::cell::Cell;
use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::common::types::{CelInt, DYN_TYPE, INT_TYPE};
use cel::common::value::CowVal;
use cel::parser::pratt_parser::{Lexer, TokenKind};
use cel::{Context, Env, ExecutionError, Value};

use super::{ENV, RuleError};

pub const TEXT_BYTES_MAX: usize = 4 << 10;
pub const TOKENS_MAX: usize = 1_000;
pub const DEPTH_MAX: usize = 64;
/// Uses of variables: each may hold the whole body.
pub const NAMES_MAX: usize = 64;
/// Patterns are compiled on every run.
pub const MATCHES_MAX: usize = 8;
pub const STEPS_MAX: u64 = 100_000;

/// A look at the whole body costs a step for each of these.
const BYTES_A_STEP: u64 = 128;

/// No expression can name it: `@` is no letter of CEL's.
const METER: &str = "@meter";

/// Bounds what the parser is given: it recurses, and what it builds is walked and dropped recursively.
pub fn check_text(text: &str) -> Result<(), RuleError> {
    if text.trim().is_empty() {
        return Err(RuleError("the expression is empty".into()));
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(RuleError(format!("the expression is longer than {TEXT_BYTES_MAX} bytes")));
    }
    let mut lexer = Lexer::new(text);
    for _ in 0..TOKENS_MAX {
        if matches!(lexer.lex().kind, TokenKind::TokEnd | TokenKind::TokError) {
            return Ok(());
        }
    }
    Err(RuleError(format!("the expression has more than {TOKENS_MAX} words and signs")))
}

/// Checks the expression's shape and puts every loop on the meter.
pub fn bound(expression: &mut IdedExpr) -> Result<(), RuleError> {
    let mut walk = Walk::default();
    walk.visit(expression, 0)
}

#[derive(Default)]
struct Walk {
    names: usize,
    matches: usize,
    /// The own variables of the loops around, innermost last.
    loops: Vec<Loop>,
}

struct Loop {
    own: Vec<String>,
    /// How often its step names something else.
    elsewhere: usize,
}

impl Walk {
    fn visit(&mut self, expression: &mut IdedExpr, depth: usize) -> Result<(), RuleError> {
        if depth > DEPTH_MAX {
            return Err(RuleError(format!("the expression is nested deeper than {DEPTH_MAX}")));
        }
        let depth = depth + 1;
        match &mut expression.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.visit(&mut select.operand, depth),
            Expr::List(list) => list.elements.iter_mut().try_for_each(|one| self.visit(one, depth)),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| self.entry(&mut entry.expr, depth)),
            Expr::Struct(fields) => {
                fields.entries.iter_mut().try_for_each(|entry| self.entry(&mut entry.expr, depth))
            }
            Expr::Call(call) => self.call(call, depth),
            Expr::Comprehension(each) => {
                self.visit(&mut each.iter_range, depth)?;
                let own = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
                let own = own.into_iter().flatten().cloned().collect();
                self.loops.push(Loop { own, elsewhere: 0 });
                for part in [&mut each.accu_init, &mut each.loop_cond, &mut each.loop_step, &mut each.result]
                {
                    self.visit(part, depth)?;
                }
                let elsewhere = self.loops.pop().map_or(0, |inner| inner.elsewhere);
                meter(&mut each.iter_range, elsewhere);
                Ok(())
            }
        }
    }

    fn entry(&mut self, entry: &mut EntryExpr, depth: usize) -> Result<(), RuleError> {
        match entry {
            EntryExpr::StructField(field) => self.visit(&mut field.value, depth),
            EntryExpr::MapEntry(entry) => {
                self.visit(&mut entry.key, depth)?;
                self.visit(&mut entry.value, depth)
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<(), RuleError> {
        // Innermost first; a loop's own variable is nothing else to that loop and to those around it.
        for inside in self.loops.iter_mut().rev() {
            if inside.own.iter().any(|own| own == name) {
                break;
            }
            inside.elsewhere += 1;
        }
        self.names += 1;
        if self.names > NAMES_MAX {
            return Err(RuleError(format!("the expression uses variables more than {NAMES_MAX} times")));
        }
        Ok(())
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<(), RuleError> {
        if call.func_name == "matches" {
            self.matches += 1;
            let pattern = call.args.last().map(|arg| &arg.expr);
            let Some(Expr::Literal(LiteralValue::String(pattern))) =
                pattern.filter(|_| self.matches <= MATCHES_MAX && self.loops.is_empty())
            else {
                return Err(RuleError(format!(
                    "matches(…) wants its pattern written out, stands in no loop, and at most {MATCHES_MAX} times"
                )));
            };
            check_pattern(pattern.inner())?;
        }
        if let Some(target) = &mut call.target {
            self.visit(target, depth)?;
        }
        call.args.iter_mut().try_for_each(|arg| self.visit(arg, depth))
    }
}

/// A pattern that can't be compiled would fail on every event.
fn check_pattern(pattern: &str) -> Result<(), RuleError> {
    let literal =
        |text: &str| IdedExpr { id: 0, expr: Expr::Literal(LiteralValue::String(text.to_owned().into())) };
    let call = CallExpr {
        func_name: "matches".into(),
        target: Some(Box::new(literal(""))),
        args: vec![literal(pattern)],
    };
    let context = Context::with_env(Arc::clone(&ENV));
    Value::resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }, &context)
        .map(|_| ())
        .map_err(|_| RuleError(format!("{pattern:?} is no regular expression, or too large a one")))
}

/// `range` becomes `@meter(range, elsewhere)`.
fn meter(range: &mut IdedExpr, elsewhere: usize) {
    let id = range.id;
    let elsewhere = LiteralValue::Int(CelInt::from(elsewhere as i64));
    let args = vec![std::mem::take(range), IdedExpr { id, expr: Expr::Literal(elsewhere) }];
    *range = IdedExpr { id, expr: Expr::Call(CallExpr { func_name: METER.into(), target: None, args }) };
}

pub fn install(env: &mut Env) {
    env.add_overload(METER, "meter_range", vec![DYN_TYPE, INT_TYPE], charge).expect("the name is ours alone");
}

thread_local! {
    /// Steps left, and what a look at the whole body costs. CEL's functions are plain pointers, so there is no other way
    /// to hand them something; an evaluation never leaves its thread.
    static METERED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Runs with a full meter. Whatever the outcome, an empty meter is the answer: `all` and `||` may hide an error.
pub fn metered<T>(body_bytes: usize, run: impl FnOnce() -> T) -> Result<T, RuleError> {
    METERED.set((STEPS_MAX, body_bytes as u64 / BYTES_A_STEP));
    let outcome = run();
    if METERED.get().0 == 0 {
        return Err(RuleError(format!("the expression runs too long on this event: over {STEPS_MAX} steps")));
    }
    Ok(outcome)
}

fn charge<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (left, whole_body) = METERED.get();
    let count = |number: &CelInt| u64::try_from(*number.inner()).unwrap_or(0);
    let elsewhere = args.pop().and_then(|arg| arg.downcast_ref::<CelInt>().map(count)).unwrap_or(0);
    let range = args.pop().ok_or_else(|| ExecutionError::function_error(METER, "no range"))?;
    let rounds = range.as_sizer().map_or(0, |sizer| count(&sizer.size()));
    let round = 1 + elsewhere.saturating_mul(whole_body);
    let left = left.saturating_sub(1 + rounds.saturating_mul(round));
    METERED.set((left, whole_body));
    if left == 0 { Err(ExecutionError::function_error(METER, "empty")) } else { Ok(range) }
}
