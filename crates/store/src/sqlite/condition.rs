//! The conditions of a filter as SQL, and the values they number. Nothing of a filter's text goes into the SQL.

use rusqlite::types::ToSql;

use crate::find::Demand;

/// All must hold; none means everything.
#[derive(Default)]
pub struct Conditions {
    sql: String,
    values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    /// `?` stands for the value wherever it is needed. What is not wanted is no condition.
    pub fn demand<T: ToSql + 'static>(&mut self, condition: &str, wanted: Option<T>) {
        if let Some(wanted) = wanted {
            self.values.push(Box::new(wanted));
            self.state(&condition.replace('?', &format!("${}", self.values.len())));
        }
    }

    pub fn demand_all(&mut self, wanted: impl Iterator<Item = Demand>) {
        for condition in wanted {
            match condition {
                Demand::Text(column, text) => self.demand(&format!("{column} = ?"), Some(text)),
                Demand::Number(column, number) => self.demand(&format!("{column} = ?"), Some(number)),
                Demand::Word(column, word) => self.demand_word(column, Some(&word)),
                Demand::AtLeast(column, least) => self.demand(&format!("{column} >= ?"), Some(least)),
                Demand::Below(column, end) => self.demand(&format!("{column} < ?"), Some(end)),
            }
        }
    }

    pub fn demand_type(&mut self, wanted: Option<&str>) {
        self.demand_word("event.type", wanted);
    }

    /// Exact, or a prefix when it ends in `*`.
    pub fn demand_word(&mut self, column: &str, wanted: Option<&str>) {
        let prefix = wanted.and_then(|wanted| wanted.strip_suffix('*'));
        self.demand(&format!("{column} = ?"), wanted.filter(|_| prefix.is_none()).map(str::to_owned));
        self.demand(&format!("substr({column}, 1, length(?)) = ?"), prefix.map(str::to_owned));
    }

    /// A condition without a value.
    pub fn state(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    /// Each with AND before it.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    pub fn values(&self) -> Vec<&dyn ToSql> {
        self.values.iter().map(AsRef::as_ref).collect()
    }
}
