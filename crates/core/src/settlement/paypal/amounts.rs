//! Amounts as PayPal writes them: decimals beside their currency.

use serde::Deserialize;

use crate::money::{self, Currency};
use crate::settlement::payment::Transaction;
use crate::settlement::reading::UnreadableEvent;

#[derive(Deserialize)]
pub struct Breakdown {
    gross_amount: Option<DecimalAmount>,
    paypal_fee: Option<DecimalAmount>,
    net_amount: Option<DecimalAmount>,
}

impl Breakdown {
    /// What was booked; `None` where it is not said, or not in one currency.
    pub fn transaction(self, source: &str) -> Result<Option<Transaction>, UnreadableEvent> {
        let (Some(gross), Some(fee), Some(net)) = (self.gross_amount, self.paypal_fee, self.net_amount)
        else {
            return Ok(None);
        };
        let ((amount, currency), (fee, of_fee), (net, of_net)) =
            (gross.read()?, fee.read()?, net.read_signed()?);
        let transaction =
            Transaction { source: Some(source.to_owned()), amount, fee, net, currency: Some(currency) };
        Ok(Some(transaction).filter(|_| of_fee == currency && of_net == currency))
    }
}

#[derive(Deserialize)]
pub struct DecimalAmount {
    currency_code: String,
    value: String,
}

impl DecimalAmount {
    pub fn read(&self) -> Result<(i64, Currency), UnreadableEvent> {
        self.parse(&self.value)
    }

    /// Of a small payment less can be left than nothing.
    fn read_signed(&self) -> Result<(i64, Currency), UnreadableEvent> {
        match self.value.strip_prefix('-') {
            Some(value) => self.parse(value).map(|(amount, currency)| (-amount, currency)),
            None => self.read(),
        }
    }

    fn parse(&self, value: &str) -> Result<(i64, Currency), UnreadableEvent> {
        let currency = Currency::parse(&self.currency_code)
            .ok_or_else(|| UnreadableEvent::Currency(self.currency_code.clone()))?;
        let amount = money::parse_decimal(value, currency)
            .ok_or_else(|| UnreadableEvent::Amount(format!("{:?}", self.value)))?;
        Ok((amount, currency))
    }
}

pub fn amount(money: Option<&DecimalAmount>) -> Result<(i64, Option<Currency>), UnreadableEvent> {
    let Some(money) = money else { return Ok((0, None)) };
    money.read().map(|(amount, currency)| (amount, Some(currency)))
}
